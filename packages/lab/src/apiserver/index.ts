export type { ApiObject } from "./api-object.ts";
export { createAuthority } from "./certificate.ts";
export type { Authority } from "./certificate.ts";
export type { Misbehaviour, WatchListFault } from "./faults.ts";
export { kubeconfigFor } from "./kubeconfig.ts";
export { createApiServer } from "./server.ts";
export type { ApiServer, ApiServerOptions } from "./server.ts";
