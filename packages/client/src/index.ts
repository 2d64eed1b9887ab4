/**
 * What a program needs that follows the node-state API, whatever it does with it. A backend's process needs `@turnout/client/daemon` besides.
 *
 * Importing this loads no other package but core: gRPC and the protocol come when they are first needed.
 *
 * @packageDocumentation
 */
export { eligibilityOf, isNodeKnown } from "./api/eligibility.ts";
export type { Eligibility } from "./api/eligibility.ts";
export type { NodeLink, NodeLinkOptions } from "./api/watch/node-link.ts";
export { NODE_WAIT_MS, NO_NODE_KNOWN } from "./api/watch/node-wait.ts";
export { DEFAULT_TARGET, parseApiTarget, parseTarget, tlsFiles } from "./api/watch/target.ts";
export type { ApiTarget, TlsFiles } from "./api/watch/target.ts";
export { fetchFullState, openNodeLink, watchFullState, watchNodeState } from "./api/watch/watch-node-state.ts";
export type { FullState, WatchOptions } from "./api/watch/watch-node-state.ts";
export { IssueLog } from "./process/issue-log.ts";
export type { IssueLogOptions } from "./process/issue-log.ts";
