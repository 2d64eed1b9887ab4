import { setImmediate } from "node:timers/promises";
import { ProxyError, type Issue, type Log } from "@turnout/core";
import {
  entriesOf,
  entryId,
  replaceDocuments,
  settleFiles,
  summarize,
  type DocumentSummary,
  type FileEntry,
  type FileSummary,
  type Settlement,
} from "./file-contents.ts";
import { isSameInode, readStable, type FileScan } from "./file-scan.ts";
import { readDocument, splitDocuments, type DocumentContent } from "./manifest.ts";
import type { ObjectSink } from "./object-sink.ts";
import { splitKey, type RawObject } from "./raw-object.ts";

/** What a file reader works with. */
export interface FileReaderOptions {
  /** The source's path, absolute. */
  readonly root: string;
  readonly sink: ObjectSink;
  readonly log: Log;
  readonly report: (issue: Issue) => void;
}

interface FileState {
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

/** The objects of documents read during one pass, by the document's hash and the object's id. */
type FreshDocuments = Map<string, ReadonlyMap<string, RawObject>>;

const GONE = "gone";
const DOCUMENTS_PER_BREATH = 50;
/** A file that is written to all the time is taken as it is after this many looks. */
const SUSPECTS_MAX = 8;

/**
 * Turns what is on disk into calls of a sink, remembering hashes only.
 *
 * Shape: an unchanged file is not read, an unchanged document not parsed, an unchanged object not handed on.
 */
export class FileReader {
  readonly #options: FileReaderOptions;
  readonly #files = new Map<string, FileState>();
  readonly #handed = new Map<string, string>();
  readonly #ignored = new Set<string>();
  #reported = new Set<string>();
  #isRootLost = false;

  constructor(options: FileReaderOptions) {
    this.#options = options;
  }

  /** How many objects have been handed on. */
  get size(): number {
    return this.#handed.size;
  }

  /**
   * Bring the sink up to what was found on disk.
   *
   * Edges: returns false when a file looks half-written or has just gone: look again soon. `acceptsSuspects` takes them as they are.
   * A file written in place looks half-written until a second look finds the same version: its end may still be under way.
   * One that is emptied keeps what it said, since `kubectl get … > FILE` empties it for as long as the answer takes.
   */
  async read(scan: FileScan, how: { readonly acceptsSuspects: boolean }): Promise<boolean> {
    const fresh: FreshDocuments = new Map();
    let isSettled = true;
    if (this.#isRootLost) this.#options.log.info("the source can be read again", { path: this.#options.root });
    this.#isRootLost = false;
    for (const [path, fingerprint] of scan.files) {
      if (this.#files.get(path)?.fingerprint === fingerprint) continue;
      if (!(await this.#readFile(path, fresh, how.acceptsSuspects))) isSettled = false;
    }
    for (const path of this.#files.keys()) if (!scan.files.has(path) && !this.#forget(path)) isSettled = false;
    await this.#handOn(fresh);
    return isSettled;
  }

  /** The source's path itself can't be read: a file's objects go after a second look, a directory's stay. */
  async rootFailed(error: ProxyError): Promise<boolean> {
    if (error.code === "not_found" && this.#files.has(this.#options.root)) {
      const isGone = this.#forget(this.#options.root);
      await this.#handOn(new Map());
      return isGone;
    }
    this.#isRootLost = true;
    const issue = { object: this.#options.root, what: error.what, hint: "what it said before stays in force" };
    this.#tell([{ id: `root ${error.message}`, issue }], true);
    return true;
  }

  async #readFile(path: string, fresh: FreshDocuments, acceptsSuspects: boolean): Promise<boolean> {
    const before = this.#files.get(path);
    try {
      const { text, fingerprint, isStable } = await readStable(path);
      const documents = await this.#readDocuments(text, before?.summary, fresh);
      if (!acceptsSuspects && isSuspicious({ before, fingerprint, isStable, documents })) {
        const suspects = (before?.suspects ?? 0) + 1;
        this.#files.set(path, { ...(before ?? blank(path)), suspect: fingerprint, suspects });
        return false;
      }
      if (documents.length === 0 && wasFilled(before)) {
        this.#files.set(path, { ...before, fingerprint, suspect: "", suspects: 0, error: emptied(path) });
        return true;
      }
      const summary = replaceDocuments(path, documents, before?.summary);
      const isWhole = summary.kept.length === 0;
      if (isWhole && before !== undefined && (before.error !== undefined || before.summary.kept.length > 0))
        this.#options.log.info("the file can be read again", { path });
      this.#files.set(path, { fingerprint, suspect: "", suspects: 0, summary, error: undefined });
      return true;
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      // It went between the look and the read: the next look will tell.
      if (error.code === "not_found") return false;
      this.#files.set(path, { ...(before ?? blank(path)), error });
      return true;
    }
  }

  async #readDocuments(text: string, before: FileSummary | undefined, fresh: FreshDocuments): Promise<readonly DocumentSummary[]> {
    const known = new Map(before?.documents.map((document) => [document.hash, document]));
    const summaries: DocumentSummary[] = [];
    for (const [index, document] of splitDocuments(text).entries()) {
      const same = known.get(document.hash);
      if (same !== undefined) {
        summaries.push({ ...same, line: document.line });
        continue;
      }
      const content = readDocument(document.text);
      fresh.set(document.hash, objectsById(content));
      summaries.push(summarize(document, content));
      if (index % DOCUMENTS_PER_BREATH === DOCUMENTS_PER_BREATH - 1) await setImmediate();
    }
    return summaries;
  }

  /** Forget a file that is not there, at the second look: editors and deployers delete before they create. */
  #forget(path: string): boolean {
    const state = this.#files.get(path);
    if (state === undefined) return true;
    if (state.suspect === GONE) return this.#files.delete(path);
    this.#files.set(path, { ...state, fingerprint: "", suspect: GONE });
    return false;
  }

  async #handOn(fresh: FreshDocuments): Promise<void> {
    const { sink } = this.#options;
    const settlement = settleFiles([...this.#files.values()].map(({ summary }) => summary));
    this.#reportAll(settlement);
    for (const id of this.#handed.keys()) {
      if (settlement.winners.has(id)) continue;
      this.#handed.delete(id);
      const [kind, key] = splitId(id);
      const { namespace, name } = splitKey(key);
      sink.remove(kind, namespace, name);
    }
    for (const [id, { path, entry }] of settlement.winners) {
      if (this.#handed.get(id) === entry.hash) continue;
      const object = await this.#objectOf(path, entry, fresh);
      // The file changed since; the next look will bring it.
      if (object === undefined) continue;
      this.#handed.set(id, entry.hash);
      sink.upsert(entry.kind, object);
    }
  }

  async #objectOf(path: string, entry: FileEntry, fresh: FreshDocuments): Promise<RawObject | undefined> {
    if (!fresh.has(entry.document)) {
      // An older document comes into its own, because the file that shadowed it went.
      const text = await readStable(path).then(
        (read) => read.text,
        (error: unknown) => {
          if (!ProxyError.is(error)) throw error;
          return "";
        },
      );
      const document = splitDocuments(text).find(({ hash }) => hash === entry.document);
      if (document === undefined) return undefined;
      fresh.set(entry.document, objectsById(readDocument(document.text)));
    }
    return fresh.get(entry.document)?.get(entryId(entry));
  }

  #reportAll({ shadowed }: Settlement): void {
    const findings: Finding[] = [];
    for (const { summary, error } of this.#files.values()) {
      const { path } = summary;
      if (error !== undefined) {
        const issue = { object: path, what: error.what, hint: error.hint ?? "what it said before stays in force" };
        findings.push({ id: `${path} ${error.message}`, issue });
      }
      for (const { hash, line, problems, ignored } of summary.documents) {
        for (const { lineOffset, what, hint } of problems) {
          const issue = { object: `${path}:${line + lineOffset}`, what, hint };
          findings.push({ id: `${path} ${hash} ${what}`, issue });
        }
        this.#noteIgnored(path, ignored);
      }
    }
    for (const { id, path, line, winner } of shadowed) {
      const what = `${id.replace(" ", " of ")} is already given by ${winner === path ? "the same file" : winner}`;
      const issue = { object: `${path}:${line}`, what, hint: "the first one counts; delete one of them" };
      findings.push({ id: `${path} ${id} ${winner}`, issue });
    }
    this.#tell(findings, false);
  }

  #tell(findings: readonly Finding[], keepsOthers: boolean): void {
    const before = this.#reported;
    this.#reported = new Set([...(keepsOthers ? before : []), ...findings.map(({ id }) => id)]);
    const told = new Set(before);
    for (const { id, issue } of findings) {
      if (told.has(id)) continue;
      told.add(id);
      this.#options.report(issue);
    }
  }

  #noteIgnored(path: string, ignored: readonly string[]): void {
    for (const what of ignored) {
      if (this.#ignored.has(what)) continue;
      this.#ignored.add(what);
      this.#options.log.info(`${what} is not read by a service proxy`, { path });
    }
  }
}

interface Finding {
  /** The same finding of the same version has the same id. */
  readonly id: string;
  readonly issue: Issue;
}

function objectsById(content: DocumentContent): ReadonlyMap<string, RawObject> {
  const objects = new Map<string, RawObject>();
  // The first of two with one name counts, here as between files.
  for (const found of content.objects) if (!objects.has(entryId(found))) objects.set(entryId(found), found.object);
  return objects;
}

function blank(path: string): FileState {
  return { fingerprint: "", suspect: "", suspects: 0, summary: { path, documents: [], kept: [] }, error: undefined };
}

interface Version {
  readonly before: FileState | undefined;
  readonly fingerprint: string;
  readonly isStable: boolean;
  readonly documents: readonly DocumentSummary[];
}

/** Tell whether a version looks half-written: one that was seen unchanged at two looks does not. */
function isSuspicious({ before, fingerprint, isStable, documents }: Version): boolean {
  if (before !== undefined && (before.suspect === fingerprint || before.suspects >= SUSPECTS_MAX)) return false;
  if (!isStable || !documents.every(({ isReadable }) => isReadable)) return true;
  if (documents.length === 0) return wasFilled(before);
  return before !== undefined && isSameInode(before.fingerprint, fingerprint) && hasChanged(before.summary, documents);
}

function wasFilled(before: FileState | undefined): before is FileState {
  return before !== undefined && entriesOf(before.summary).length > 0;
}

function hasChanged(before: FileSummary, documents: readonly DocumentSummary[]): boolean {
  const hashes = (list: readonly DocumentSummary[]): string => list.map(({ hash }) => hash).join(" ");
  return hashes(before.documents) !== hashes(documents);
}

function emptied(path: string): ProxyError {
  const hint = "what it said before stays in force; to have nothing, delete the file or write an empty List";
  return new ProxyError("invalid_object", "the file is empty", { object: path, hint });
}

function splitId(id: string): readonly [FileEntry["kind"], string] {
  const space = id.indexOf(" ");
  return [id.slice(0, space) as FileEntry["kind"], id.slice(space + 1)];
}
