/**
 * Turnout's node-state server: sources that feed Kubernetes objects into core's store. What serves the node-state
 * API is behind the door `./serve`, because it loads gRPC.
 *
 * @packageDocumentation
 */
export { createFileSource } from "./files/file-source.ts";
export type { FileSourceOptions, FileTimings } from "./files/file-source.ts";
export { createKubeSource } from "./kube/kube-source.ts";
export type { KubeSourceOptions, KubeTimings } from "./kube/kube-source.ts";
export type { ObjectSink, Source } from "./source/object-sink.ts";
export { EventQueue } from "./kube/events/event-queue.ts";
export type { EventSender, EventSource } from "./kube/events/event-sending.ts";
export type { ReflectorTimings } from "./kube/reflector-timings.ts";
export type { AccessOptions } from "./kube/access/resolve-access.ts";
export { hiddenServices } from "./hidden-services.ts";
export type { HiddenServicesOptions } from "./hidden-services.ts";
export { openSource, parseSourceSpec } from "./node-state/source.ts";
export type { ObjectSourceSpec, SourceOptions, SourceSpec } from "./node-state/source.ts";
