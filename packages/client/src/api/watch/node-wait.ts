/**
 * How long a new process waits for its own Node object, with the rules that stand in force; then it follows Services without.
 * @source kube-proxy 1.36 waits about as long for the node's IP
 */
export const NODE_WAIT_MS = 30_000;

/** What is logged then. */
export const NO_NODE_KNOWN =
  "this node's Node object is not known, following Services without it: node ports answer on every address of this host";
