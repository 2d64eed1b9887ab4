export type { ApiObject, ObjectMeta } from "./api-object.ts";
export { createAuthority } from "./certificate.ts";
export type { Authority, Certificate, CertificateSubject } from "./certificate.ts";
export type { Misbehaviour, Verb, WatchListFault } from "./faults.ts";
export { kubeconfigFor } from "./kubeconfig.ts";
export type { KubeconfigParts } from "./kubeconfig.ts";
export type { ServedKind } from "./resources.ts";
export { createApiServer } from "./server.ts";
export type { ApiServer, ApiServerOptions, ApiServerTls, RequestRecord } from "./server.ts";
