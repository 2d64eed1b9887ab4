import { hash } from "node:crypto";
import type { ObjectKind } from "@turnout/core";
import type { DocumentContent, ManifestProblem } from "./manifest.ts";

/** An object of a file, without its content. */
export interface FileEntry {
  /** Over all files: `kind namespace/name`. */
  readonly id: string;
  /** Of the object's content; the same content in other words of YAML has the same hash. */
  readonly hash: string;
  /** Of the document it is in. */
  readonly document: string;
}

/** A document of a file, without its content. */
export interface DocumentSummary {
  readonly hash: string;
  readonly line: number;
  readonly entries: readonly FileEntry[];
  readonly problems: readonly ManifestProblem[];
  readonly ignored: readonly string[];
  readonly isReadable: boolean;
}

/** A file, without its content. */
export interface FileSummary {
  readonly path: string;
  readonly documents: readonly DocumentSummary[];
  /** Entries of unreadable documents, as they were when those could be read. */
  readonly kept: readonly FileEntry[];
}

/** An object that is given twice; only the winner counts. */
export interface Shadowed {
  readonly id: string;
  readonly path: string;
  readonly line: number;
  readonly winner: string;
}

/** Which file gives which object, of those that were asked for. */
export interface FileOwners {
  readonly winners: ReadonlyMap<string, { readonly path: string; readonly entry: FileEntry }>;
  readonly shadowed: readonly Shadowed[];
}

/** Give the identity of an object over all files: `kind namespace/name`. */
export function entryId(object: { readonly kind: ObjectKind; readonly key: string }): string {
  return `${object.kind} ${object.key}`;
}

/** Give the kind, and `namespace/name`, of an identity. */
export function splitEntryId(id: string): readonly [ObjectKind, string] {
  const space = id.indexOf(" ");
  return [id.slice(0, space) as ObjectKind, id.slice(space + 1)];
}

/** Reduce a read document to what is remembered of it. */
export function summarize(document: { readonly hash: string; readonly line: number }, content: DocumentContent): DocumentSummary {
  const entries = content.objects.map((found) => ({
    id: entryId(found),
    hash: hash("sha256", JSON.stringify(found.object), "base64url"),
    document: document.hash,
  }));
  const { problems, ignored, isReadable } = content;
  return { hash: document.hash, line: document.line, entries, problems, ignored: [...new Set(ignored)], isReadable };
}

/** Give a file's entries, those it can still read and those it keeps. */
export function entriesOf(file: FileSummary): readonly FileEntry[] {
  return [...file.documents.flatMap(({ entries }) => entries), ...file.kept];
}

/**
 * Put a file's new documents in the place of its old ones.
 *
 * Edges: as long as one of the new documents can't be read, no object the file gave before is taken away: it may be in there.
 */
export function replaceDocuments(path: string, documents: readonly DocumentSummary[], before: FileSummary | undefined): FileSummary {
  if (before === undefined || documents.every(({ isReadable }) => isReadable)) return { path, documents, kept: [] };
  const readable = new Set(documents.flatMap(({ entries }) => entries.map(({ id }) => id)));
  return { path, documents, kept: entriesOf(before).filter(({ id }) => !readable.has(id)) };
}

/**
 * Decide which file gives each object of `ids`: the first by name, in it the first document.
 *
 * Shape: `files` in any order. Costs a look at every entry, and memory for those asked for only.
 */
export function resolveFiles(files: Iterable<FileSummary>, ids: ReadonlySet<string>): FileOwners {
  const winners = new Map<string, { path: string; entry: FileEntry }>();
  const shadowed: Shadowed[] = [];
  const consider = (entries: readonly FileEntry[], path: string, line: number): void => {
    for (const entry of entries) {
      if (!ids.has(entry.id)) continue;
      const winner = winners.get(entry.id);
      if (winner === undefined) winners.set(entry.id, { path, entry });
      else shadowed.push({ id: entry.id, path, line, winner: winner.path });
    }
  };
  for (const { path, documents, kept } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    for (const { entries, line } of documents) consider(entries, path, line);
    consider(kept, path, 1);
  }
  return { winners, shadowed };
}
