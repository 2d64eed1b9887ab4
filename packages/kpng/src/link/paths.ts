/** kpng's method for one node's state, on the wire. */
export const LOCAL_WATCH_PATH = "/localv1.Sets/Watch";

/** kpng's method for the whole cluster's state, on the wire. */
export const GLOBAL_WATCH_PATH = "/globalv1.Sets/Watch";
