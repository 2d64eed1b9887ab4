import { stringify } from "yaml";
import type { HttpRequest, Reply } from "./health.ts";

/** What `/statusz` tells of the process. */
export interface ProcessStatus {
  /** Ms since the epoch. */
  readonly startedMs: number;
  readonly nowMs: number;
  /** Of the runtime, e.g. `v24.1.0`. */
  readonly runtimeVersion: string;
  readonly version: string;
  /** The Kubernetes that the process behaves like, e.g. `1.36`. */
  readonly emulationVersion: string;
  /** Paths of the same server. */
  readonly paths: readonly string[];
}

const COMPONENT = "kube-proxy";
const GROUP = "config.k8s.io";
/** Newest first; the others are answered with a warning. */
const VERSIONS = ["v1beta1", "v1alpha1"] as const;
const TYPES = ["application/json", "application/yaml"] as const;
const ACCEPTED = [...TYPES, "text/plain"];

/** What a client asks for: text, or an object of a version. */
type Wanted = { readonly type: "text/plain" } | { readonly type: (typeof TYPES)[number]; readonly version: (typeof VERSIONS)[number] };

/**
 * Decide what an Accept header asks for. Pure.
 *
 * Shape: the first clause that can be served counts; an object is asked for as `application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.
 * Edges: nothing, `text/*` and any type mean text; undefined: nothing that is asked for can be served.
 * @source apiserver v0.36.3 pkg/server/statusz, pkg/endpoints/handlers/negotiation
 */
export function negotiate(accept: string, kind: string): Wanted | undefined {
  if (accept.trim() === "") return { type: "text/plain" };
  for (const clause of accept.split(",")) {
    const [media = "", ...rest] = clause.split(";").map((part) => part.trim());
    const parameters = new Map(rest.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)] as const));
    if (["text/plain", "text/*", "*/*"].includes(media) && !parameters.has("as")) return { type: "text/plain" };
    const type = TYPES.find((known) => known === media);
    const version = VERSIONS.find((known) => known === parameters.get("v"));
    if (type !== undefined && version !== undefined && parameters.get("g") === GROUP && parameters.get("as") === kind)
      return { type, version };
  }
  return undefined;
}

/** Answer `/statusz`. Pure. */
export function statuszReply(status: ProcessStatus, { accept }: HttpRequest): Reply {
  const { startedMs, nowMs, runtimeVersion, version, emulationVersion } = status;
  const uptime = Math.max(0, Math.floor((nowMs - startedMs) / 1000));
  const paths = foldersOf(status.paths);
  const text = [
    `Started: ${unixDate(startedMs)}`,
    `Up: ${Math.floor(uptime / 3600)} hr ${twoDigits(Math.floor(uptime / 60) % 60)} min ${twoDigits(uptime % 60)} sec`,
    `Go version: ${runtimeVersion}`,
    `Binary version: ${version}`,
    `Emulation version: ${emulationVersion}`,
    `Paths: ${paths.join(" ")}`,
  ];
  return page("Statusz", accept, `\n${text.join("\n")}\n`, {
    startTime: new Date(startedMs).toISOString().replace(/\.\d+Z$/, "Z"),
    uptimeSeconds: uptime,
    goVersion: runtimeVersion,
    binaryVersion: version,
    emulationVersion,
    paths,
  });
}

/** Answer `/flagz`; `flags` are all flags by name, as text. Pure. */
export function flagzReply(flags: Readonly<Record<string, string>>, { accept }: HttpRequest): Reply {
  const names = Object.keys(flags).toSorted();
  const sorted = Object.fromEntries(names.map((name) => [name, flags[name] ?? ""]));
  return page("Flagz", accept, names.map((name) => `${name}=${sorted[name] ?? ""}\n`).join(""), { flags: sorted });
}

/** The first folder of each path, once, sorted. Pure. @source apiserver pkg/server/statusz/statusz.go aggregatePaths */
export function foldersOf(paths: readonly string[]): readonly string[] {
  const folders = paths.map((path) => path.split("/")[1] ?? "").filter((folder) => folder !== "");
  return [...new Set(folders.map((folder) => `/${folder}`))].toSorted();
}

function page(kind: "Statusz" | "Flagz", accept: string, text: string, fields: Readonly<Record<string, unknown>>): Reply {
  const wanted = negotiate(accept, kind);
  const name = kind.toLowerCase();
  if (wanted === undefined) return notAcceptable();
  if (wanted.type === "text/plain") {
    const warning =
      "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";
    return { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8" }, body: `\n${COMPONENT} ${name}\n${warning}\n${text}` };
  }
  const { type, version } = wanted;
  const object = { kind, apiVersion: `${GROUP}/${version}`, metadata: { name: COMPONENT }, ...fields };
  const old = `299 - "This version of the ${name} endpoint is deprecated. Please use a newer version."`;
  return {
    status: 200,
    headers: {
      "Content-Type": `${type};g=${GROUP};v=${version};as=${kind}`,
      ...(version === VERSIONS[0] ? {} : { Warning: old }),
    },
    body: type === "application/yaml" ? stringify(object, { sortMapEntries: true }) : JSON.stringify(object, undefined, 2),
  };
}

function notAcceptable(): Reply {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `only the following media types are accepted: ${ACCEPTED.join(", ")}`,
    reason: "NotAcceptable",
    code: 406,
  };
  return { status: 406, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body, undefined, 2) };
}

/** A time as Go's UnixDate writes it: `Mon Nov 23 11:26:27 UTC 2026`. */
function unixDate(ms: number): string {
  const [weekday = "", day = "", month = "", year = "", time = ""] = new Date(ms).toUTCString().replace(",", "").split(" ");
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} UTC ${year}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
