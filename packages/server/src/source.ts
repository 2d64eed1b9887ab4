import { ProxyError, type Issue } from "@turnout/core";
import { createFileSource, type FileTimings } from "./file-source.ts";
import { createKubeSource, type KubeSourceOptions, type KubeTimings } from "./kube-source.ts";
import type { Source } from "./object-sink.ts";

/** A `--source`, read. */
export type SourceSpec = { readonly kind: "kube" } | { readonly kind: "file"; readonly path: string };

/** What sources need; file sources use `clock`, `log`, `report` and `timings` only. */
export interface SourceOptions extends Omit<KubeSourceOptions, "timings"> {
  /** Hears of what is wrong in files, once per version; default: a warning in the log. */
  readonly report?: ((issue: Issue) => void) | undefined;
  /** Replaces single times. */
  readonly timings?: Partial<KubeTimings & FileTimings> | undefined;
}

/**
 * Read `kube` or `file:PATH`.
 *
 * @throws {ProxyError} `invalid_object` for anything else; `host_unsupported` for `api:`, which this version can't do.
 */
export function parseSourceSpec(text: string): SourceSpec {
  if (text === "kube") return { kind: "kube" };
  const [, scheme, rest = ""] = /^(file|api):(.*)$/s.exec(text) ?? [];
  if (scheme === "file" && rest !== "") return { kind: "file", path: rest };
  if (scheme === "api") {
    const hint = "use kube or file:PATH";
    throw new ProxyError("host_unsupported", "this version has no node-state API to read from", { object: text, hint });
  }
  const hint = "write kube or file:PATH";
  throw new ProxyError("invalid_object", "--source is not understood", { object: JSON.stringify(text), hint });
}

/** Make the source that `spec` names. Nothing is opened before `run`. @throws {ProxyError} as {@link parseSourceSpec}. */
export function openSource(spec: string, options: SourceOptions): Source {
  const parsed = parseSourceSpec(spec);
  if (parsed.kind === "kube") return createKubeSource(options);
  const { clock, log, report, timings } = options;
  return createFileSource({ path: parsed.path, clock, log, report, timings });
}
