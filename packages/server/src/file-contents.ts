import { hash } from "node:crypto";
import type { ObjectKind } from "@turnout/core";
import type { DocumentContent, ManifestProblem } from "./manifest.ts";

/** An object of a file, without its content. */
export interface FileEntry {
  readonly kind: ObjectKind;
  readonly key: string;
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

/** Which file gives which object. */
export interface Settlement {
  readonly winners: ReadonlyMap<string, { readonly path: string; readonly entry: FileEntry }>;
  readonly shadowed: readonly Shadowed[];
}

/** Give the identity of an entry over all files: `kind namespace/name`. */
export function entryId(entry: { readonly kind: ObjectKind; readonly key: string }): string {
  return `${entry.kind} ${entry.key}`;
}

/** Reduce a read document to what is remembered of it. */
export function summarize(document: { readonly hash: string; readonly line: number }, content: DocumentContent): DocumentSummary {
  const entries = content.objects.map(({ kind, key, object }) => ({
    kind,
    key,
    hash: hash("sha256", JSON.stringify(object), "base64url"),
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
  const readable = new Set(documents.flatMap(({ entries }) => entries.map(entryId)));
  return { path, documents, kept: entriesOf(before).filter((entry) => !readable.has(entryId(entry))) };
}

/** Settle which file gives each object: the first by name, in it the first document. `files` in any order. */
export function settleFiles(files: Iterable<FileSummary>): Settlement {
  const winners = new Map<string, { path: string; entry: FileEntry }>();
  const shadowed: Shadowed[] = [];
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const lines = new Map(file.documents.map(({ hash: document, line }) => [document, line]));
    for (const entry of entriesOf(file)) {
      const id = entryId(entry);
      const winner = winners.get(id);
      if (winner === undefined) winners.set(id, { path: file.path, entry });
      else shadowed.push({ id, path: file.path, line: lines.get(entry.document) ?? 1, winner: winner.path });
    }
  }
  return { winners, shadowed };
}
