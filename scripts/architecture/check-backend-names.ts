import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/** Packages that work with whatever backend there is. `host` and `lab` speak of tools, some of which are called like backends. */
const NEUTRAL = /^packages\/(?:core|conformance|client|server|cli)\/src\//;
/** The one file that lists backends. */
const REGISTRY = "packages/cli/src/registry.ts";
/** kube-proxy's configuration has sections, flags and modes of these names. */
const CONFIGURATION = "packages/client/src/daemon/config/";
const KUBE_PROXY_WORDS: ReadonlySet<string> = new Set(["iptables", "ipvs"]);

/**
 * Check that nobody but the registry says a backend's name: what is special about a backend is a member of its module. Pure.
 *
 * Edges: a name counts as a word of its own; a field of kube-proxy's configuration (`iptables.masqueradeAll`) is none.
 */
export function checkBackendNames(files: readonly SourceFile[]): Finding[] {
  const names = new Set(files.flatMap(({ path }) => /^packages\/backend-([^/]+)\//.exec(path)?.[1] ?? []));
  return files
    .filter(({ path, isTest }) => NEUTRAL.test(path) && !isTest && path !== REGISTRY)
    .flatMap(({ path, texts }) =>
      texts.flatMap(({ what, line }) =>
        [...new Set(what.match(/(?<![\w./@-])[a-z][\w-]*(?![\w./-])/g) ?? [])]
          .filter((word) => names.has(word) && !(path.startsWith(CONFIGURATION) && KUBE_PROXY_WORDS.has(word)))
          .map((subject) => ({
            rule: "backend-names",
            path,
            line,
            subject,
            what: `"${subject}" is a backend: only ${REGISTRY} names one`,
          })),
      ),
    );
}
