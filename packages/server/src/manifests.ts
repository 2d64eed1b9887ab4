/**
 * API objects without an API server: manifests as text, and the Services among them that are left to other proxies. Reads nothing, so it can be used where there is
 * no file system.
 *
 * @packageDocumentation
 */
export { readDocument, splitDocuments } from "./files/manifest.ts";
export type { DocumentContent, DocumentText, ManifestObject, ManifestProblem } from "./files/manifest.ts";
export { hiddenAmong } from "./source/hidden-among.ts";
export type { RawMetadata, RawObject } from "./source/raw-object.ts";
