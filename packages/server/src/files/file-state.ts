import { ProxyError } from "@turnout/core";
import { entriesOf, type DocumentSummary, type FileSummary } from "./file-contents.ts";
import { isSameInode } from "./file-scan.ts";

/** What a file source knows of one file. */
export interface FileState {
  /** Of the version that counts; "" while none does. */
  readonly fingerprint: string;
  /** A version that looks half-written, "gone", or "" when there is none. */
  readonly suspect: string;
  /** How many different suspects in a row. */
  readonly suspects: number;
  readonly summary: FileSummary;
  /** It could not be read at all, or is empty where it wasn't. */
  readonly error: ProxyError | undefined;
}

/** The suspect of a file that is not there. */
export const GONE = "gone";
/** The suspect of a symlink that leads nowhere. */
const DANGLING = "dangling";
/** A file that is written to all the time is taken as it is after this many looks. */
const SUSPECTS_MAX = 8;

/** The state of a file of which no version counts yet. */
export function blankState(path: string): FileState {
  return { fingerprint: "", suspect: "", suspects: 0, summary: { path, documents: [], kept: [] }, error: undefined };
}

/** A version of a file as just read, and what was known before. */
export interface FileVersion {
  readonly before: FileState | undefined;
  readonly fingerprint: string;
  readonly isStable: boolean;
  readonly documents: readonly DocumentSummary[];
}

/** Tell whether a version looks half-written: one that was seen unchanged at two looks does not. */
export function isSuspicious({ before, fingerprint, isStable, documents }: FileVersion): boolean {
  if (before !== undefined && (before.suspect === fingerprint || before.suspects >= SUSPECTS_MAX)) return false;
  if (!isStable || !documents.every(({ isReadable }) => isReadable)) return true;
  if (documents.length === 0) return wasFilled(before);
  return before !== undefined && isSameInode(before.fingerprint, fingerprint) && hasChanged(before.summary, documents);
}

/** Tell whether a file gave any object so far. */
export function wasFilled(before: FileState | undefined): before is FileState {
  return before !== undefined && entriesOf(before.summary).length > 0;
}

function hasChanged(before: FileSummary, documents: readonly DocumentSummary[]): boolean {
  const hashes = (list: readonly DocumentSummary[]): string => list.map(({ hash }) => hash).join(" ");
  return hashes(before.documents) !== hashes(documents);
}

/**
 * What is known of a file, or of a directory, once a symlink to it was found to lead nowhere.
 *
 * Edges: at the first look it may be under way to somewhere else; at the second it can't be read, and what it said before stays in force.
 */
export function danglingState(path: string, before: FileState = blankState(path)): FileState {
  const hint = "have it lead somewhere, or delete it; until then what it said before stays in force";
  const error =
    before.suspect === DANGLING ? new ProxyError("not_found", "the symlink leads nowhere", { object: path, hint }) : before.error;
  return { ...before, fingerprint: "", suspect: DANGLING, error };
}

/** Say of a file that it is empty where it wasn't. */
export function emptiedError(path: string): ProxyError {
  const hint = "what it said before stays in force; to have nothing, delete the file or write an empty List";
  return new ProxyError("invalid_object", "the file is empty", { object: path, hint });
}

/**
 * Say what of the files found at a start can't be read whole; undefined when nothing is.
 *
 * Edges: an object of which can be told which it is, and that nobody can use, is no reason: it is skipped, and reported by itself.
 */
export function brokenAtStart(files: Iterable<FileState>): ProxyError | undefined {
  const broken: ProxyError[] = [];
  for (const { error, summary } of files) {
    if (error !== undefined) broken.push(error);
    for (const { line, problems } of summary.documents) {
      for (const { isUnclear, lineOffset, what } of problems)
        if (isUnclear) broken.push(new ProxyError("invalid_object", what, { object: `${summary.path}:${line + lineOffset}` }));
    }
  }
  const [first] = broken;
  if (first === undefined) return undefined;
  const others = broken.length === 1 ? "" : `, and ${broken.length - 1} more`;
  const hint = "correct it and start again; nothing was changed";
  return new ProxyError(first.code, `${first.what}${others}`, { object: first.object ?? "", hint, cause: first });
}
