import { setImmediate } from "node:timers/promises";
import { ProxyError, type Issue, type Log } from "@turnout/core";
import {
  entriesOf,
  replaceDocuments,
  resolveFiles,
  splitEntryId,
  summarize,
  type DocumentSummary,
  type FileEntry,
  type FileSummary,
  type Shadowed,
} from "./file-contents.ts";
import { isDangling, readStable, type FileScan } from "./file-scan.ts";
import { blankState, brokenAtStart, danglingState, emptiedError, GONE, isSuspicious, wasFilled, type FileState } from "./file-state.ts";
import { readDocument, splitDocuments, type DocumentContent } from "./manifest.ts";
import type { ObjectSink } from "../source/object-sink.ts";
import { splitKey, type RawObject } from "../source/raw-object.ts";

/** What a file reader works with. */
export interface FileReaderOptions {
  /** The source's path, absolute. */
  readonly root: string;
  readonly sink: ObjectSink;
  readonly log: Log;
  readonly report: (issue: Issue) => void;
}

/** How files are read. */
interface ReadHow {
  /** Files that look half-written are taken as they are. */
  readonly acceptsSuspects: boolean;
  /** Nobody looks at the sink before this read is over: objects are handed on file by file, not all together at the end. */
  readonly isFirst: boolean;
}

/** Objects read and not yet handed on, by {@link versionOf} their entries. */
type FreshObjects = Map<string, RawObject>;

const DOCUMENTS_PER_BREATH = 50;
/** In the first read so many objects are handed on together: each time is a look at all that was read. */
const FIRST_OBJECTS = 1_000;
/** What holds while it can't be told what a document means. */
const UNCLEAR_MEANWHILE = "until then objects that the file gave before stay, and what else it says is applied";

/**
 * Turns what is on disk into calls of a sink, remembering hashes only.
 *
 * Shape: an unchanged file is not read, an unchanged document not parsed, an unchanged object not handed on.
 */
export class FileReader {
  readonly #options: FileReaderOptions;
  readonly #files = new Map<string, FileState>();
  /** The hash of what was handed on, by the object's id. */
  readonly #handed = new Map<string, string>();
  /** Objects whose files changed: which file gives them has to be decided again. */
  #unresolved = new Set<string>();
  #shadowed: readonly Shadowed[] = [];
  readonly #ignored = new Set<string>();
  /** What is wrong now; what is among it was reported. */
  #held: readonly Finding[] = [];
  /** Of the source's path itself: it can't be read just now, or it was a file and is gone, and all it said with it. */
  #root: "read" | "lost" | "gone" = "read";

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
   * Edges: returns false when a file looks half-written or has just gone: look again soon.
   * A file written in place looks half-written until a second look finds the same version: its end may still be under way.
   * One that is emptied keeps what it said, since `kubectl get … > FILE` empties it for as long as the answer takes.
   * @throws {ProxyError} in the first read alone, for what can't be read whole: nothing was said before that could stay in force.
   */
  async read(scan: FileScan, how: ReadHow): Promise<boolean> {
    const fresh: FreshObjects = new Map();
    let isComplete = true;
    if (this.#root !== "read") this.#options.log.info("the source can be read again", { path: this.#options.root });
    this.#root = "read";
    for (const [path, fingerprint] of scan.files) {
      if (this.#files.get(path)?.fingerprint === fingerprint) continue;
      if (!(await this.#readFile(path, fresh, how.acceptsSuspects))) isComplete = false;
      if (how.isFirst && fresh.size >= FIRST_OBJECTS) await this.#passOn(fresh);
    }
    for (const path of scan.dangling) {
      const state = danglingState(path, this.#files.get(path));
      this.#files.set(path, state);
      if (state.error === undefined) isComplete = false;
    }
    for (const path of this.#files.keys()) if (!scan.files.has(path) && !isDangling(path, scan) && !this.#forget(path)) isComplete = false;
    await this.#passOn(fresh);
    if (how.isFirst) {
      if (!isComplete) return false;
      const broken = brokenAtStart(this.#files.values());
      if (broken !== undefined) throw broken;
    }
    this.#reportAll();
    return isComplete;
  }

  /** The source's path itself can't be read: a file's objects go after a second look, a directory's stay. */
  async rootFailed(error: ProxyError): Promise<boolean> {
    const { root, log } = this.#options;
    // Said once, when it went; nothing of it is in force that could be told of.
    if (this.#root === "gone") return true;
    if (error.code === "not_found" && this.#files.has(root)) {
      if (!this.#forget(root)) return false;
      this.#root = "gone";
      await this.#passOn(new Map());
      this.#reportAll();
      log.warn("the file is gone, and all it said with it", { path: root });
      return true;
    }
    this.#root = "lost";
    const issue = { object: root, what: error.what, hint: "what it said before stays in force" };
    this.#notify([{ id: `root ${error.message}`, issue }], true);
    return true;
  }

  async #readFile(path: string, fresh: FreshObjects, acceptsSuspects: boolean): Promise<boolean> {
    const before = this.#files.get(path);
    try {
      const { text, fingerprint, isStable } = await readStable(path);
      const documents = await this.#readDocuments(text, before?.summary, fresh);
      if (!acceptsSuspects && isSuspicious({ before, fingerprint, isStable, documents })) {
        const suspects = (before?.suspects ?? 0) + 1;
        this.#files.set(path, { ...(before ?? blankState(path)), suspect: fingerprint, suspects });
        return false;
      }
      if (documents.length === 0 && wasFilled(before)) {
        this.#files.set(path, { ...before, fingerprint, suspect: "", suspects: 0, error: emptiedError(path) });
        return true;
      }
      const summary = replaceDocuments(path, documents, before?.summary);
      const isWhole = summary.kept.length === 0;
      if (isWhole && before !== undefined && (before.error !== undefined || before.summary.kept.length > 0))
        this.#options.log.info("the file can be read again", { path });
      this.#files.set(path, { fingerprint, suspect: "", suspects: 0, summary, error: undefined });
      if (before !== undefined) this.#markUnresolved(before.summary);
      this.#markUnresolved(summary);
      return true;
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      // It went between the look and the read: the next look will tell.
      if (error.code === "not_found") return false;
      this.#files.set(path, { ...(before ?? blankState(path)), error });
      return true;
    }
  }

  async #readDocuments(text: string, before: FileSummary | undefined, fresh: FreshObjects): Promise<readonly DocumentSummary[]> {
    const known = new Map(before?.documents.map((document) => [document.hash, document]));
    const summaries: DocumentSummary[] = [];
    for (const [index, document] of splitDocuments(text).entries()) {
      const same = known.get(document.hash);
      if (same !== undefined) {
        summaries.push({ ...same, line: document.line });
        continue;
      }
      const content = readDocument(document.text);
      const summary = summarize(document, content);
      this.#keepNews(summary, content, fresh);
      summaries.push(summary);
      if (index % DOCUMENTS_PER_BREATH === DOCUMENTS_PER_BREATH - 1) await setImmediate();
    }
    return summaries;
  }

  /** Forget a file that is not there, at the second look: editors and deployers delete before they create. */
  #forget(path: string): boolean {
    const state = this.#files.get(path);
    if (state === undefined) return true;
    if (state.suspect === GONE) {
      this.#markUnresolved(state.summary);
      return this.#files.delete(path);
    }
    this.#files.set(path, { ...state, fingerprint: "", suspect: GONE });
    return false;
  }

  /** Keep the objects that differ from what was handed on: of a file in which one object changed, that one. */
  #keepNews({ entries }: DocumentSummary, { objects }: DocumentContent, fresh: FreshObjects): void {
    for (const [index, entry] of entries.entries()) {
      const object = objects[index]?.object;
      if (object === undefined || this.#handed.get(entry.id) === entry.hash) continue;
      // The first of two with one name counts, here as between files.
      if (!fresh.has(versionOf(entry))) fresh.set(versionOf(entry), object);
    }
  }

  #markUnresolved(summary: FileSummary): void {
    for (const { id } of entriesOf(summary)) this.#unresolved.add(id);
  }

  /** Decide which file gives the objects of files that changed, and bring the sink up to it. `fresh` is used up. */
  async #passOn(fresh: FreshObjects): Promise<void> {
    if (this.#unresolved.size === 0) return;
    const { sink } = this.#options;
    const ids = this.#unresolved;
    this.#unresolved = new Set();
    const { winners, shadowed } = resolveFiles(
      [...this.#files.values()].map(({ summary }) => summary),
      ids,
    );
    this.#shadowed = [...this.#shadowed.filter(({ id }) => !ids.has(id)), ...shadowed];
    for (const id of ids) {
      if (winners.has(id) || !this.#handed.delete(id)) continue;
      const [kind, key] = splitEntryId(id);
      const { namespace, name } = splitKey(key);
      sink.remove(kind, namespace, name);
    }
    for (const [id, { path, entry }] of winners) {
      if (this.#handed.get(id) === entry.hash) continue;
      const object = fresh.get(versionOf(entry)) ?? (await this.#readAgain(path, entry, fresh));
      // The file changed since; the next look will bring it.
      if (object === undefined) {
        this.#unresolved.add(id);
        continue;
      }
      this.#handed.set(id, entry.hash);
      sink.upsert(splitEntryId(id)[0], object);
    }
    fresh.clear();
  }

  /** Read a document once more that comes into its own because the file that shadowed it went. */
  async #readAgain(path: string, entry: FileEntry, fresh: FreshObjects): Promise<RawObject | undefined> {
    const text = await readStable(path).then(
      (read) => read.text,
      (error: unknown) => {
        if (!ProxyError.is(error)) throw error;
        return "";
      },
    );
    const document = splitDocuments(text).find(({ hash }) => hash === entry.document);
    if (document === undefined) return undefined;
    const content = readDocument(document.text);
    this.#keepNews(summarize(document, content), content, fresh);
    return fresh.get(versionOf(entry));
  }

  #reportAll(): void {
    const findings: Finding[] = [];
    for (const { summary, error } of this.#files.values()) {
      const { path } = summary;
      if (error !== undefined) {
        const issue = { object: path, what: error.what, hint: error.hint ?? "what it said before stays in force" };
        findings.push({ id: `${path} ${error.message}`, issue });
      }
      for (const { hash, line, problems, ignored } of summary.documents) {
        for (const { lineOffset, what, hint, isUnclear } of problems) {
          const issue = { object: `${path}:${line + lineOffset}`, what, hint: isUnclear ? `${hint}; ${UNCLEAR_MEANWHILE}` : hint };
          findings.push({ id: `${path} ${hash} ${what}`, issue });
        }
        this.#noteIgnored(path, ignored);
      }
    }
    for (const { id, path, line, winner } of this.#shadowed) {
      const what = `${id.replace(" ", " of ")} is already given by ${winner === path ? "the same file" : winner}`;
      const issue = { object: `${path}:${line}`, what, hint: "the first one counts; delete one of them" };
      findings.push({ id: `${path} ${id} ${winner}`, issue });
    }
    this.#notify(findings, false);
  }

  #notify(findings: readonly Finding[], keepsOthers: boolean): void {
    const reported = new Set(this.#held.map(({ id }) => id));
    const ids = new Set(findings.map(({ id }) => id));
    this.#held = keepsOthers ? [...this.#held.filter(({ id }) => !ids.has(id)), ...findings] : findings;
    this.#options.sink.holdIssues?.(this.#held.map(({ issue }) => issue));
    for (const { id, issue } of findings) {
      if (reported.has(id)) continue;
      reported.add(id);
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

/** Names one version of an object: the one in the entry's document. */
function versionOf({ document, id }: FileEntry): string {
  return `${document} ${id}`;
}
