import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/**
 * The layers of each package, by folder below its `src`, and which other layers of the package each may import. Files directly in `src` are entry points and
 * wiring: they may import every room and no room imports them. A key such as `client/daemon` has the rooms within a room. Why these: docs/adr/0022-rooms.md.
 */
export const LAYERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: {
    model: [],
    contract: ["model"],
    intake: ["model"],
    policy: ["model"],
    state: ["model", "intake", "policy"],
    sync: ["model", "contract"],
    explain: ["model", "contract"],
    process: ["contract"],
    testing: ["model", "contract", "intake", "policy", "state", "sync", "explain"],
  },
  client: {
    gen: [],
    process: [],
    sockets: [],
    api: ["gen", "process"],
    daemon: ["api", "process", "sockets"],
  },
  host: {
    exec: [],
    facts: [],
    rights: ["netlink"],
    memory: ["netlink"],
    queue: [],
    "nft-statement": [],
    rules: [],
    netlink: ["queue", "nft-statement"],
    addresses: ["netlink"],
    watch: ["netlink", "queue"],
    iptables: ["exec", "watch", "rules"],
    ipset: [],
    ipvs: ["netlink"],
    nft: ["watch", "netlink", "nft-statement", "rules", "exec", "facts"],
    bpf: ["facts", "netlink"],
    testing: [
      "exec",
      "facts",
      "rights",
      "memory",
      "queue",
      "nft-statement",
      "rules",
      "netlink",
      "addresses",
      "watch",
      "iptables",
      "ipset",
      "ipvs",
      "nft",
      "bpf",
    ],
  },
  conformance: {
    oracle: [],
    runner: ["oracle"],
    scenarios: ["runner"],
    reference: ["oracle", "runner"],
    checks: ["oracle", "runner"],
    histories: ["oracle", "runner", "checks"],
    breakages: ["runner", "checks", "histories"],
    describe: ["runner", "scenarios", "checks", "histories", "breakages"],
  },
  "client/daemon": {
    host: [],
    config: ["host"],
    events: [],
    feed: [],
    repair: [],
    health: ["config"],
    metrics: ["health"],
    insight: ["health"],
    run: ["host", "config", "events", "feed", "repair", "health", "metrics", "insight"],
    program: ["host", "config", "metrics", "run"],
  },
  server: {
    gen: [],
    source: [],
    files: ["source"],
    kube: ["source"],
    grpc: ["gen"],
    "node-api": ["gen", "grpc"],
    "node-state": ["source", "files", "kube"],
  },
  fakes: {
    host: [],
    ipset: ["host"],
    nft: ["host"],
    iptables: ["host", "ipset"],
    ipvs: ["host"],
  },
  explain: {
    tables: [],
    readings: ["tables"],
    ways: ["tables", "readings"],
    causes: ["tables", "readings", "ways"],
    findings: ["tables", "readings"],
    why: ["tables", "readings", "ways", "causes"],
  },
  kpng: {
    gen: [],
    link: ["gen"],
    server: ["gen", "link"],
  },
};

/** The layer of a file among those of a key of {@link ROOMS}; "" for a file that lies beside them, undefined for one from elsewhere. */
function layerIn(key: string, path: string): string | undefined {
  const [name, ...folders] = key.split("/");
  const around = `${["packages", name, "src", ...folders].join("/")}/`;
  return path.startsWith(around) ? path.slice(around.length, Math.max(around.length, path.indexOf("/", around.length))) : undefined;
}

function targetOf(file: SourceFile, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

function layerProblem(file: SourceFile, specifier: string): string | undefined {
  const target = targetOf(file, specifier);
  if (!file.isTest && target.includes("/test-support/")) return "only tests import what lies in test-support";
  if (file.isTest) return undefined;
  for (const [key, layers] of Object.entries(LAYERS)) {
    const [from, to] = [layerIn(key, file.path), layerIn(key, target)];
    if (from === undefined || to === undefined || from === to || from === "") continue;
    const allowed = layers[from];
    if (allowed === undefined) return `${key}/${from} is no layer of scripts/architecture/check-layers.ts`;
    if (!allowed.includes(to))
      return `${from} may import ${allowed.length === 0 ? "no other layer" : allowed.join(", ")}, not ${to === "" ? "an entry point" : to}`;
  }
  return undefined;
}

/** Check imports inside a package against its layers, and that nothing published imports what only tests use. Pure. */
export function checkLayers(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) =>
    file.imports
      .filter(({ specifier }) => specifier.startsWith("."))
      .flatMap(({ specifier, line }) => {
        const what = layerProblem(file, specifier);
        return what === undefined ? [] : [{ rule: "layers", path: file.path, line, subject: specifier, what }];
      }),
  );
}
