import { parseTarget } from "@turnout/client";
import { ProxyError, type Issue } from "@turnout/core";
import { createFileSource, type FileTimings } from "../files/file-source.ts";
import { createKubeSource, type KubeSourceOptions, type KubeTimings } from "../kube/kube-source.ts";
import type { Source } from "../source/object-sink.ts";

/** A `--source` of Kubernetes objects, read. */
export type ObjectSourceSpec = { readonly kind: "kube" } | { readonly kind: "file"; readonly path: string };

/** A `--source`, read: Kubernetes objects, or another node-state server's node states. */
export type SourceSpec = ObjectSourceSpec | { readonly kind: "api"; readonly target: string };

/** What sources need; file sources use `clock`, `log`, `report`, `onHealth` and `timings` only. */
export interface SourceOptions extends Omit<KubeSourceOptions, "timings"> {
  /** Hears of what is wrong in files, once per version; default: a warning in the log. */
  readonly report?: ((issue: Issue) => void) | undefined;
  /** Replaces single times. */
  readonly timings?: Partial<KubeTimings & FileTimings> | undefined;
}

/**
 * Read `kube`, `file:PATH` or `api:TARGET`.
 *
 * @throws {ProxyError} `invalid_object` for anything else.
 */
export function parseSourceSpec(text: string): SourceSpec {
  if (text === "kube") return { kind: "kube" };
  const [, scheme, rest = ""] = /^(file|api):(.*)$/s.exec(text) ?? [];
  if (scheme === "file" && rest !== "") return { kind: "file", path: rest };
  if (scheme === "api" && rest !== "") {
    parseTarget(rest);
    return { kind: "api", target: rest };
  }
  const hint = "write kube, file:PATH or api:unix:///path";
  throw new ProxyError("invalid_object", "--source is not understood", { object: JSON.stringify(text), hint });
}

/** Make the source of objects that `spec` names. Nothing is opened before `run`. */
export function openSource(parsed: ObjectSourceSpec, options: SourceOptions): Source {
  if (parsed.kind === "kube") return createKubeSource(options);
  const { clock, log, report, onHealth, timings } = options;
  return createFileSource({ path: parsed.path, clock, log, report, onHealth, timings });
}
