import { hash } from "node:crypto";
import { ifNotTooDeep, YAML_LEVELS_MAX } from "@turnout/client/daemon";
import { OBJECT_KINDS, parseJSON, type ObjectKind } from "@turnout/core";
import { isAlias, isCollection, LineCounter, parseAllDocuments, Scalar, visit, type Document } from "yaml";
import { isRawObject, isRecord, keyOf, type RawObject } from "../source/raw-object.ts";
import { isSelected } from "../source/selectors.ts";

/** One document of a file, not yet read. */
export interface DocumentText {
  readonly text: string;
  /** Line of the file its first line is, from 1. */
  readonly line: number;
  /** Of the text. */
  readonly hash: string;
}

/** An object found in a document. */
export interface ManifestObject {
  readonly kind: ObjectKind;
  /** `namespace/name`; a namespaced object without namespace is in "default", as kubectl has it. */
  readonly key: string;
  readonly object: RawObject;
}

/** Something wrong with a document. */
export interface ManifestProblem {
  /** Counted from the document's first line, which is 0. */
  readonly lineOffset: number;
  readonly what: string;
  /** What to write. What holds until then is known to who reads the document. */
  readonly hint: string;
  /** It can't be told what was meant: it may be anything that the file gave before. */
  readonly isUnclear: boolean;
}

/** What a document holds. */
export interface DocumentContent {
  readonly objects: readonly ManifestObject[];
  /** Services that are not for us: another proxy's by their label, or headless. */
  readonly hidden: readonly RawObject[];
  readonly problems: readonly ManifestProblem[];
  /** `apiVersion kind` of what a service proxy doesn't read. */
  readonly ignored: readonly string[];
  /** False: something in it is unclear, so it can't be told what the document was meant to hold. */
  readonly isReadable: boolean;
}

const API_VERSIONS: Readonly<Record<ObjectKind, readonly string[]>> = {
  Service: ["v1"],
  Node: ["v1"],
  EndpointSlice: ["discovery.k8s.io/v1"],
  ServiceCIDR: ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"],
};

/** Cut a file into its YAML documents; in YAML `---` at a line's start always is a border, even within a scalar. */
export function splitDocuments(fileText: string): readonly DocumentText[] {
  const documents: DocumentText[] = [];
  const text = fileText.startsWith("\uFEFF") ? fileText.slice(1) : fileText;
  let start = 0;
  let line = 1;
  const add = (end: number): void => {
    const part = text.slice(start, end);
    if (hasContent(part)) documents.push({ text: part, line, hash: hash("sha256", part, "base64url") });
    for (let at = text.indexOf("\n", start); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) line++;
    start = end;
  };
  for (const match of text.matchAll(/^---(?=\s|$)/gm)) {
    add(match.index);
    start += 3;
  }
  add(text.length);
  return documents;
}

/** Read one document, JSON or YAML. Never throws; what is wrong is in `problems`, and the rest is used. */
export function readDocument(text: string): DocumentContent {
  const found: Findings = { objects: [], hidden: [], problems: [], ignored: [] };
  valuesOf(text, found, (value, lineOffset) => collect(value, { lineOffset, found, where: "" }));
  return { ...found, isReadable: !found.problems.some(({ isUnclear }) => isUnclear) };
}

interface Findings {
  readonly objects: ManifestObject[];
  readonly hidden: RawObject[];
  readonly problems: ManifestProblem[];
  readonly ignored: string[];
}

function hasContent(text: string): boolean {
  // Comments and %directives alone are no document.
  return /^(?![^\S\n]*(#|%|$))/m.test(text);
}

function valuesOf(text: string, found: Findings, take: (value: unknown, lineOffset: number) => void): void {
  const json = jsonOf(text);
  if (json !== undefined) return take(json, lineOffsetOf(text, text.search(/\S/)));
  const lineCounter = new LineCounter();
  const documents = ifNotTooDeep(() => parseAllDocuments(text, { merge: true, logLevel: "silent", lineCounter }));
  if (documents === undefined) return void found.problems.push(tooDeep(0));
  for (const document of documents) {
    const value = plainValue(document, lineCounter);
    if ("problem" in value) found.problems.push(value.problem);
    else if (value.plain !== null && value.plain !== undefined) {
      take(value.plain, lineCounter.linePos(document.contents?.range?.[0] ?? 0).line - 1);
    }
  }
}

/** JSON is a hundred times faster to read than YAML; undefined: not JSON, the YAML parser will say what is wrong. */
function jsonOf(text: string): unknown {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    return parseJSON(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function plainValue(document: Document, lines: LineCounter): { plain: unknown } | { problem: ManifestProblem } {
  const hint = "correct it";
  const [error] = document.errors;
  if (error !== undefined) {
    const [what = ""] = error.message.split(/ at line |\n/);
    return { problem: { lineOffset: lines.linePos(error.pos[0]).line - 1, what: `can't be parsed (${what})`, hint, isUnclear: true } };
  }
  cutDeep(document);
  try {
    // A copy: yaml's texts are slices, and each one in use would keep its whole file in memory.
    return { plain: parseJSON(JSON.stringify(document.toJS() ?? null)) };
  } catch (failure) {
    // yaml refuses aliases that multiply ("billion laughs") and aliases without an anchor only here, JSON those that hold themselves.
    const lineOffset = lines.linePos(firstAlias(document)).line - 1;
    const [text = ""] = (failure instanceof Error ? failure.message : String(failure)).split("\n");
    return { problem: { lineOffset, what: `can't be expanded (${text})`, hint, isUnclear: true } };
  }
}

/** As {@link parseJSON} does: what is nested deeper is of no kind that is read here, and no reason to refuse the rest. */
function cutDeep(document: Document): void {
  visit(document, {
    Collection: (_key, _node, path) => (path.filter(isCollection).length < YAML_LEVELS_MAX ? undefined : new Scalar("nested too deeply")),
  });
}

function tooDeep(lineOffset: number): ManifestProblem {
  return { lineOffset, what: "is nested too deeply to be parsed", hint: "correct it", isUnclear: true };
}

function firstAlias(document: Document): number {
  let position = 0;
  visit(document, {
    Alias(_key, node) {
      if (!isAlias(node)) return undefined;
      position = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return position;
}

function lineOffsetOf(text: string, position: number): number {
  return text.slice(0, position).split("\n").length - 1;
}

interface ItemPosition {
  readonly lineOffset: number;
  /** "" or ` items[3]`. */
  readonly where: string;
  readonly found: Findings;
  /** What items of a typed list are, when they don't say it themselves. */
  readonly inherited?: { readonly apiVersion: unknown; readonly kind: string };
}

function collect(value: unknown, place: ItemPosition): void {
  const { found, lineOffset, where, inherited } = place;
  const isItem = where !== "";
  const wrong = (what: string, hint: string, isUnclear: boolean): void => {
    found.problems.push({ lineOffset, what: isItem ? `${where.trim()}: ${what}` : what, hint, isUnclear });
  };
  // Garbage is often one long YAML scalar; nobody writes that to say "nothing".
  if (!isRecord(value)) return wrong("is not an object", "write Kubernetes objects", true);
  const kind = value["kind"] ?? inherited?.kind;
  const apiVersion = value["apiVersion"] ?? inherited?.apiVersion;
  // Files of other programs may lie here, such as a kustomization.yaml, which needs no kind; in a list there are objects.
  if (typeof kind !== "string") return wrong("has no kind", "add apiVersion and kind", isItem);
  if (typeof apiVersion !== "string") return wrong(`${kind} has no apiVersion`, "add apiVersion", isItem);
  if (kind.endsWith("List") && Array.isArray(value["items"])) {
    const typed = kind === "List" ? {} : { inherited: { apiVersion, kind: kind.slice(0, -"List".length) } };
    for (const [index, item] of (value["items"] as unknown[]).entries()) {
      collect(item, { found, lineOffset, where: `${where} items[${index}]`, ...typed });
    }
    return undefined;
  }
  const known = OBJECT_KINDS.find((candidate) => candidate === kind);
  if (known === undefined || groupOf(apiVersion) !== groupOf(API_VERSIONS[known][0] ?? "")) {
    found.ignored.push(`${apiVersion} ${kind}`);
    return undefined;
  }
  if (!API_VERSIONS[known].includes(apiVersion)) {
    return wrong(`${kind} of ${apiVersion} is not read`, `convert it to ${API_VERSIONS[known][0] ?? ""}`, false);
  }
  if (!isRawObject(value)) return wrong(`${kind} has no metadata.name`, "give it a name", true);
  const object = placed(known, value);
  if (object === undefined) return wrong(`${kind} has a metadata.namespace that is no name`, "correct the namespace", true);
  if (known === "Service" && !isSelected(known, object)) found.hidden.push(object);
  if (isSelected(known, object)) found.objects.push({ kind: known, key: keyOf(object), object: withApiDefaults(known, object) });
  return undefined;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

function placed(kind: ObjectKind, object: RawObject): RawObject | undefined {
  const { namespace, ...metadata } = object.metadata;
  if (kind === "Node" || kind === "ServiceCIDR") return { ...object, metadata };
  if (namespace === undefined || namespace === null || namespace === "") {
    return { ...object, metadata: { ...metadata, namespace: "default" } };
  }
  return typeof namespace === "string" && !namespace.includes("/") ? object : undefined;
}

/**
 * Fill in what the API server would have, where a hand-written file leaves it out and the core reads its absence as "not there".
 *
 * Shape: the object itself where nothing is missing.
 * Edges: only a slice port's name is concerned ("" for the unnamed port); the core knows the other defaults.
 * @source kubernetes pkg/apis/discovery/v1/defaults.go SetDefaults_EndpointPort
 */
export function withApiDefaults(kind: ObjectKind, object: RawObject): RawObject {
  const ports: unknown = (object as Readonly<Record<string, unknown>>)["ports"];
  if (kind !== "EndpointSlice" || !Array.isArray(ports)) return object;
  const isUnnamed = (port: unknown): port is Record<string, unknown> =>
    isRecord(port) && (port["name"] === undefined || port["name"] === null);
  if (!ports.some(isUnnamed)) return object;
  return { ...object, ports: ports.map((port: unknown) => (isUnnamed(port) ? { ...port, name: "" } : port)) };
}
