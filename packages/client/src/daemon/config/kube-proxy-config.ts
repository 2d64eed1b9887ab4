import { ProxyError } from "@turnout/core";
import { parseDocument, type YAMLParseError } from "yaml";
import { FIELDS, type Field } from "./config-fields.ts";
import type { ConfigPath, GivenValues } from "./config-values.ts";
import { deepPositionOf, ifNotTooDeep, YAML_LEVELS_MAX } from "../../process/yaml-depth.ts";

/** What a configuration file says. */
export interface ParsedConfigFile {
  readonly given: GivenValues;
  /** Unknown and duplicate fields, and further documents, one sentence each; they are ignored. */
  readonly warnings: readonly string[];
}

/** The only version of it there is. */
export const API_VERSION = "kubeproxy.config.k8s.io/v1alpha1";
/** What a configuration file is. */
export const KIND = "KubeProxyConfiguration";
/** Objects whose fields are rows of the table, e.g. `logging` and `logging.options`. */
const SECTIONS: ReadonlySet<string> = new Set(
  Object.keys(FIELDS).flatMap((path) => {
    const names = path.split(".");
    return names.slice(1).map((_name, index) => names.slice(0, index + 1).join("."));
  }),
);
/** Every object has them. */
const OF_ANY_OBJECT: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Read one value of the table.
 * @throws {ProxyError} `invalid_object` naming `where`.
 */
export function readField<T>(field: Pick<Field<T>, "kind">, where: string, read: (kind: Field<T>["kind"]) => T): T {
  try {
    return read(field.kind);
  } catch (error) {
    if (!ProxyError.is(error, "invalid_object")) throw error;
    throw new ProxyError("invalid_object", error.what, { object: where, ...(error.hint === undefined ? {} : { hint: error.hint }) });
  }
}

/** Tell whether kube-proxy's defaulting replaces this value. */
function isZero(value: unknown): boolean {
  return value === "" || value === 0 || value === "0" || value === "0s" || (Array.isArray(value) && value.length === 0);
}

/** Make a document plain data. @throws {ProxyError} `invalid_object` when its aliases would grow without bound, or lead nowhere. */
function expand(document: ReturnType<typeof parseDocument>, fileName: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    const hint = "write the values out instead of using aliases and merge keys";
    throw ProxyError.from(error, "invalid_object", "not readable as YAML", { object: fileName, hint });
  }
}

/** What is taken with a warning, by yaml's code. */
const WARNINGS: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: "duplicate field, the last one counts",
  MULTIPLE_DOCS: "only the first document counts",
};

/** The parser's words, without its picture of the line. */
function parseProblem(error: YAMLParseError): string {
  return error.message.split(/ at line |\n/)[0] ?? "";
}

function readDocument(text: string, fileName: string): { root: Readonly<Record<string, unknown>>; warnings: string[] } {
  // Kubernetes reads YAML 1.1, where `yes` is true, and of several documents the first. Silent: yaml refuses no second one, and writes nothing to standard error.
  const options = { version: "1.1", uniqueKeys: false, prettyErrors: true, logLevel: "silent" } as const;
  const document = ifNotTooDeep(() => parseDocument(text, options));
  const broken = document?.errors[0];
  if (broken !== undefined) {
    const line = broken.linePos?.[0].line;
    throw new ProxyError("invalid_object", `not readable as YAML or JSON (${parseProblem(broken)})`, {
      object: line === undefined ? fileName : `${fileName}:${line}`,
      cause: broken,
    });
  }
  if (document === undefined || deepPositionOf(document) !== undefined) {
    const what = `not readable as YAML (it is nested deeper than ${YAML_LEVELS_MAX} levels)`;
    throw new ProxyError("invalid_object", what, { object: fileName });
  }
  const strict = parseDocument(text, { version: "1.1", uniqueKeys: true });
  const warnings = strict.errors.flatMap(({ code, linePos }) => {
    const why = WARNINGS[code];
    return why === undefined ? [] : [`${fileName}:${linePos?.[0].line ?? 1}: ${why}`];
  });
  const root = expand(document, fileName);
  if (!isRecord(root)) {
    const hint = `write a ${KIND}, as kubeadm keeps it in the ConfigMap kube-proxy`;
    throw new ProxyError("invalid_object", `found no ${KIND}`, { object: fileName, hint });
  }
  return { root, warnings };
}

function checkType(root: Readonly<Record<string, unknown>>, fileName: string): void {
  if (root["apiVersion"] === API_VERSION && root["kind"] === KIND) return;
  const said = (field: string): string => (typeof root[field] === "string" ? root[field] : `no ${field}`);
  throw new ProxyError("invalid_object", `found ${said("apiVersion")} ${said("kind")}`, {
    object: fileName,
    hint: `it must say "apiVersion: ${API_VERSION}" and "kind: ${KIND}"`,
  });
}

/**
 * Read a KubeProxyConfiguration, YAML or JSON. What it says is not checked yet.
 *
 * Edges: unknown and duplicate fields give a warning and are ignored (kube-proxy decodes strictly, then leniently), and so does all behind the first document; `null`
 * means not set, and so do "" and 0 where kube-proxy's defaulting says so.
 * @throws {ProxyError} `invalid_object` naming the file and the field.
 * @source Kubernetes kube-proxy Configuration (v1alpha1); kube-proxy pkg/proxy/apis/config/v1alpha1
 */
export function parseKubeProxyConfig(text: string, fileName: string): ParsedConfigFile {
  const { root, warnings } = readDocument(text, fileName);
  checkType(root, fileName);
  const given: Partial<Record<ConfigPath, unknown>> = {};
  const take = (path: string, value: unknown): void => {
    const field = Object.hasOwn(FIELDS, path) ? (FIELDS[path as ConfigPath] as Field<unknown>) : undefined;
    if (field === undefined) {
      warnings.push(`${fileName}: unknown field "${path}" is ignored`);
      return;
    }
    if (value === null || value === undefined || (field.zeroIsUnset === true && isZero(value))) return;
    given[path as ConfigPath] = readField(field, `${fileName}: ${path}`, (kind) => kind.fromFile(value));
  };
  const walk = (map: Readonly<Record<string, unknown>>, prefix: string): void => {
    for (const [name, value] of Object.entries(map)) {
      const path = `${prefix}${name}`;
      if (OF_ANY_OBJECT.has(path)) continue;
      if (!SECTIONS.has(path)) take(path, value);
      else if (isRecord(value)) walk(value, `${path}.`);
      else if (value !== null) {
        throw new ProxyError("invalid_object", `expected a map, found ${JSON.stringify(value)}`, { object: `${fileName}: ${path}` });
      }
    }
  };
  walk(root, "");
  return { given: given as GivenValues, warnings };
}
