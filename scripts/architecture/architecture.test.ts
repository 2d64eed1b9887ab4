import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkBackendNames } from "./check-backend-names.ts";
import { checkImports, packageLayersIn } from "./check-imports.ts";
import type { PackageFacts } from "./check-imports.ts";
import { checkPurity } from "./check-purity.ts";
import { checkLayers, layersIn } from "./check-layers.ts";
import { checkDocs, checkSwallowed } from "./check-shape.ts";
import { describeFinding } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { parseSource } from "./source-file.ts";
import { readPages, readSources } from "./tree.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PAGE = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
const LAYERS = layersIn(PAGE);
const PACKAGES = packageLayersIn(PAGE);

function whatOf(findings: readonly Finding[]): string[] {
  return findings.map((finding) => finding.what);
}

describe("imports", () => {
  const declared = [
    "@turnout/core",
    "@turnout/client",
    "@turnout/host",
    "@turnout/server",
    "@turnout/lab",
    "@turnout/cli",
    "@turnout/backend-nft",
    "yaml",
  ];
  const packages: PackageFacts[] = ["client", "server", "host", "lab", "cli", "backend-nft", "backend-ipvs"].map((layer) => ({
    dir: `packages/${layer}`,
    name: `@turnout/${layer}`,
    dependencies: declared,
    devDependencies: [],
  }));
  packages.push({ dir: "packages/core", name: "@turnout/core", dependencies: [], devDependencies: [] });
  packages.push({ dir: "", name: "root", dependencies: [], devDependencies: ["vitest"] });
  const check = (path: string, text: string): string[] => whatOf(checkImports([parseSource(path, text)], packages, PACKAGES));

  const forbidden: readonly [path: string, text: string, what: string][] = [
    ["packages/core/src/a.ts", `import "@turnout/host";`, "core may import no package of ours, not host"],
    ["packages/core/src/a.ts", `import zod from "zod";`, "zod is not among the dependencies of @turnout/core"],
    ["packages/client/src/a.ts", `import { x } from "@turnout/server";`, "client may import core, not server"],
    ["packages/client/src/a.ts", `export * from "@turnout/host";`, "client may import core, not host"],
    ["packages/server/src/a.ts", `const x = await import("@turnout/host");`, "server may import core, client, not host"],
    ["packages/host/src/a.ts", `import type { X } from "@turnout/client";`, "host may import core, not client"],
    ["packages/server/src/a.ts", `import { x } from "@turnout/lab";`, "server may import core, client, not lab"],
    ["packages/lab/src/a.ts", `let x: import("@turnout/server").X;`, "lab may import core, host, not server"],
    ["packages/backend-nft/src/a.ts", `import { x } from "@turnout/server";`, "backend-nft may import core, client, host, not server"],
    ["packages/backend-nft/src/a.test.ts", `import { x } from "@turnout/lab/x";`, "backend-nft may import core, client, host, not lab"],
    [
      "packages/backend-ipvs/src/a.ts",
      `import x from "@turnout/backend-nft";`,
      "@turnout/backend-nft: only packages/cli/src/registry.ts and e2e name a backend",
    ],
    [
      "packages/cli/src/main.ts",
      `import x from "@turnout/backend-nft";`,
      "@turnout/backend-nft: only packages/cli/src/registry.ts and e2e name a backend",
    ],
    ["packages/cli/src/a.ts", `import x from "chalk";`, "chalk is not among the dependencies of @turnout/cli"],
    ["packages/cli/src/a.ts", `import { it } from "vitest";`, "vitest is not among the dependencies of @turnout/cli"],
    [
      "packages/cli/src/a.ts",
      `import { needs } from "@turnout/house/needs";`,
      "only tests and what is never published import @turnout/house",
    ],
    [
      "packages/lab/src/a.ts",
      `import x from "../../host/src/exec.ts";`,
      "../../host/src/exec.ts leaves packages/lab: use the package's entry point",
    ],
    ["e2e/a.test.ts", `import x from "../packages/lab/src/a.ts";`, "../packages/lab/src/a.ts leaves e2e: use the package's entry point"],
    ["scripts/a.ts", `import x from "@turnout/core";`, "scripts may import no package of ours, not core"],
  ];
  it.each(forbidden)("%s: %s", (path, text, what) => {
    expect(check(path, text)).toEqual([what]);
  });

  const allowed: readonly [path: string, text: string][] = [
    [
      "packages/backend-nft/src/a.ts",
      `import { x } from "@turnout/core"; import { y } from "@turnout/client"; import z from "@turnout/host/testing"; import "./b.ts";`,
    ],
    ["packages/cli/src/registry.ts", `const nft = () => import("@turnout/backend-nft");`],
    [
      "packages/cli/src/a.ts",
      `import x from "@turnout/server"; import y from "@turnout/lab"; import { parse } from "yaml"; import "node:fs";`,
    ],
    ["packages/server/src/a.test.ts", `import { createApiServer } from "@turnout/lab";`],
    ["packages/host/src/a.test.ts", `import { it } from "vitest"; import { needs } from "@turnout/house/needs";`],
    ["e2e/a.ts", `import x from "@turnout/backend-nft"; import y from "@turnout/lab"; import { it } from "vitest";`],
  ];
  it.each(allowed)("%s may: %s", (path, text) => {
    expect(check(path, text)).toEqual([]);
  });

  it("keeps core without dependencies", () => {
    const core = { dir: "packages/core", name: "@turnout/core", dependencies: ["zod"], devDependencies: [] };
    expect(whatOf(checkImports([], [core], PACKAGES))).toEqual(["core has no dependencies, and now zod"]);
  });
});

describe("purity", () => {
  const check = (path: string, text: string): string[] => checkPurity([parseSource(path, text)]).map((finding) => finding.subject);
  const impure: readonly [text: string, subject: string][] = [
    ["const t = Date.now();", "Date.now"],
    ["const t = new Date();", "new Date()"],
    ["const t = Date();", "Date()"],
    ["const r = Math.random();", "Math.random"],
    ["setTimeout(f, 1);", "setTimeout"],
    ["globalThis.setTimeout(f, 1);", "globalThis"],
    ["const e = process.env;", "process"],
    ["console.log(1);", "console"],
    ["const world = { process };", "process"],
    ["const world = { [process]: 1 };", "process"],
    ["performance.now();", "performance"],
    ["AbortSignal.timeout(5);", "AbortSignal.timeout"],
    [`import { readFileSync } from "node:fs";`, "node:fs"],
    [`import { hash, randomUUID } from "node:crypto";`, "node:crypto"],
    [`import type { X } from "zod";`, "zod"],
  ];
  it.each(impure)("core may not: %s", (text, subject) => {
    expect(check("packages/core/src/a.ts", text)).toEqual([subject]);
  });

  it("lets core have hash, times handed in, and properties that are only called like something impure", () => {
    const text = `import { hash } from "node:crypto"; import { x } from "./b.ts";
      const at = new Date(ms), when = Date.parse(text), y = { process: 1, console: x.console }; interface R { process: string }; class C { process(): void {} }`;
    expect(check("packages/core/src/a.ts", text)).toEqual([]);
  });

  it("lets core's clocks use timers, and nothing of core but what tests are built with import them", () => {
    expect(check("packages/core/src/process/system-clock.ts", "setTimeout(f, 1);")).toEqual([]);
    expect(check("packages/core/src/testing/sync-bench.ts", `import { settle } from "./clock.ts";`)).toEqual([]);
    expect(check("packages/core/src/sync/a.ts", `import { systemClock } from "../process/system-clock.ts";`)).toEqual([
      "../process/system-clock.ts",
    ]);
  });

  it("leaves tests and the rest of a backend alone", () => {
    for (const path of ["packages/core/src/a.test.ts", "packages/backend-nft/src/apply.ts", "packages/cli/src/names.ts"]) {
      expect(check(path, `import "node:fs"; process.exit(1);`)).toEqual([]);
    }
  });

  const deciding = ["objects.ts", "names.ts", "plan.ts", "explain.ts", "render.ts", "render-affinity.ts", "render/affinity.ts"];
  it.each(deciding)("a backend's %s may import core and its like, and no effects", (name) => {
    const path = `packages/backend-nft/src/${name}`;
    const up = name.includes("/") ? "../" : "./";
    expect(
      check(
        path,
        `import { x } from "@turnout/core"; import { y } from "@turnout/core/backend"; import "${up}names.ts"; import "${up}chains.ts"; import type { O } from "${up}apply.ts";`,
      ),
    ).toEqual([]);
    expect(check(path, `import "@turnout/host"; import "${up}apply.ts"; Date.now();`)).toEqual([
      "@turnout/host",
      `${up}apply.ts`,
      "Date.now",
    ]);
  });

  it("lets what decides use the rule text that backends share, which is pure itself", () => {
    expect(check("packages/backend-x/src/plan.ts", `import { x } from "@turnout/host/iptables/text";`)).toEqual([]);
    expect(
      check(
        "packages/backend-x/src/plan.ts",
        `import { x } from "@turnout/host/ipset/text"; import { y } from "@turnout/host/ipvs/model";`,
      ),
    ).toEqual([]);
    expect(check("packages/backend-x/src/plan.ts", `import { x } from "@turnout/host/ipvs";`)).not.toEqual([]);
    expect(check("packages/backend-x/src/plan.ts", `import { x } from "@turnout/host/iptables";`)).toEqual(["@turnout/host/iptables"]);
    expect(check("packages/host/src/iptables/text/a.ts", `import { x } from "@turnout/core"; import "node:fs"; Date.now();`)).toEqual([
      "node:fs",
      "Date.now",
    ]);
  });

  it("follows a deciding file's imports, and leaves alone what it only takes types from", () => {
    const src = "packages/backend-nft/src";
    const files = [
      parseSource(`${src}/render.ts`, `import { a } from "./chains.ts"; import type { O } from "./options.ts";`),
      parseSource(`${src}/chains.ts`, `import { b } from "./deeper.ts";`),
      parseSource(`${src}/deeper.ts`, `import { run } from "@turnout/host";`),
      parseSource(`${src}/options.ts`, `import { run } from "@turnout/host";`),
    ];
    expect(checkPurity(files).map(describeFinding)).toEqual([
      `error: ${src}/deeper.ts:1: [purity] chains.ts decides and imports this file: it may not import @turnout/host`,
    ]);
  });
});

describe("docs", () => {
  const undocumented = (text: string): string[] => checkDocs([parseSource("a.ts", text)]).map((finding) => finding.subject);

  it.each([
    ["export const a = 1;", "a"],
    ["export function b(): void {}", "b"],
    ["export class C {}", "C"],
    ["export interface D {}", "D"],
    ["export type E = 1;", "E"],
    ["export default 1;", "default"],
    ["const f = 1; export { f };", "f"],
    ["const f = 1; export { f as g };", "g"],
    ["// not a docstring\nexport const h = 1;", "h"],
    ["/* nor this */ export const i = 1;", "i"],
    ["/** of j */ const j = 1; export const k = 1;", "k"],
  ])("finds %s", (text, name) => {
    expect(undocumented(text)).toEqual([name]);
  });

  it("takes a docstring at the statement or at what it exports, and asks for none on re-exports", () => {
    const text = `/** a */ export const a = 1;\n/** b */\nconst b = 1;\nexport { b };\n/** c */ class C {}\nexport default C;\nexport * from "./x.ts"; export { y } from "./y.ts";`;
    expect(undocumented(`import z from "./z.ts"; export default z;`)).toEqual([]);
    expect(undocumented(text)).toEqual([]);
  });
});

it("finds errors that are swallowed, and no others", () => {
  const text = `void f().catch(() => {});
    void f().catch(() => undefined);
    void f().catch(function () {});
    try { f(); } catch (error) { log(error); }
    void f().catch(report);`;
  expect(checkSwallowed([parseSource("a.test.ts", text)]).map(({ line }) => line)).toEqual([1, 2, 3]);
});

it("names the file that does not parse", () => {
  expect(() => parseSource("packages/x/src/broken.ts", "const = ;")).toThrow("packages/x/src/broken.ts");
});

it("reads the sources and pages of this repository", () => {
  const paths = readSources(ROOT).map((file) => file.path);
  expect(paths).toEqual(expect.arrayContaining(["packages/core/src/model/rows.ts", "scripts/architecture/architecture.test.ts"]));
  expect(readPages(ROOT)).toEqual(expect.arrayContaining(["ARCHITECTURE.md", "docs/rules.md", "packages/core/README.md"]));
});

describe("backends' names", () => {
  const backends = [parseSource("packages/backend-nft/src/a.ts", ""), parseSource("packages/backend-iptables/src/a.ts", "")];
  const check = (path: string, text: string): string[] =>
    checkBackendNames([...backends, parseSource(path, text)]).map(({ subject, line }) => `${subject} ${line}`);

  it.each([
    ["packages/client/src/daemon/run/a.ts", `const is = name === "nft";`, ["nft 1"]],
    ["packages/cli/src/options.ts", `\nconst help = "nft, auto, or a path";`, ["nft 2"]],
    ["packages/cli/src/a.ts", "const example = `turnout run --backend iptables --node-name ` + node;", ["iptables 1"]],
    ["packages/core/src/a.ts", `const MODES = { nft: 1 };`, ["nft 1"]],
    ["packages/client/src/daemon/config/a.ts", `const section = mode === "nft" ? "iptables" : "ipvs";`, ["nft 1"]],
  ])("objects to %s: %s", (path, text, subjects) => {
    expect(check(path, text)).toEqual(subjects);
  });

  it.each([
    ["packages/cli/src/registry.ts", `const KNOWN = [{ name: "nft" }];`],
    ["packages/cli/src/a.ts", `import type { X } from "nft"; const path = "iptables.masqueradeAll"; const section = "nftables";`],
    ["packages/cli/src/a.ts", `// nft does that\nconst metric = "kubeproxy_sync_proxy_rules_iptables_total";`],
    ["packages/host/src/a.ts", `const TOOLS = { nft: "nftables" };`],
    ["packages/cli/src/a.test.ts", `const name = "nft";`],
    ["e2e/a.ts", `const name = "nft";`],
  ])("lets %s say %s", (path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});

describe("layers", () => {
  it("are those of the tables, with all, nothing, lists and what is taken away", () => {
    expect(Object.keys(LAYERS)).toEqual(["core", "conformance", "host", "client", "client/daemon", "server", "kpng", "fakes", "explain"]);
    const page = (...rows: readonly string[]): string => ["| layer of `x` | holds | may import |", "|---|---|---|", ...rows, ""].join("\n");
    expect(layersIn(page("| `a/`, `b/` and `b/c/` | x | nothing |", "| `d/` | y | a, b |", "| `e/` | z | all but a and d |"))).toEqual({
      x: { a: [], b: [], d: ["a", "b"], e: ["b", "e"] },
    });
  });

  const layers = (path: string, text: string): string[] => whatOf(checkLayers([parseSource(path, text)], LAYERS));

  it.each([
    ["packages/core/src/sync/a.ts", `import { x } from "../state/store.ts";`, "sync may import model, contract, not state"],
    ["packages/core/src/model/a.ts", `import type { X } from "../contract/backend.ts";`, "model may import no other layer, not contract"],
    ["packages/client/src/api/a.ts", `import { x } from "../daemon/run/main.ts";`, "api may import gen, process, not daemon"],
    ["packages/core/src/state/a.ts", `import { x } from "../index.ts";`, "state may import model, intake, policy, not an entry point"],
    ["packages/host/src/iptables/a.ts", `import { x } from "../nft/b.ts";`, "iptables may import exec, watch, rules, not nft"],
    [
      "packages/host/src/nft/a.ts",
      `import { x } from "../testing/nft/b.ts";`,
      "nft may import watch, netlink, nft-statement, rules, exec, facts, not testing",
    ],
    ["packages/core/src/new/a.ts", `import { x } from "../model/rows.ts";`, "core/new is no layer of ARCHITECTURE.md"],
    ["packages/client/src/daemon/health/a.ts", `import { x } from "../run/main.ts";`, "health may import config, not run"],
    [
      "packages/client/src/daemon/run/a.ts",
      `import { x } from "../index.ts";`,
      "run may import host, config, events, feed, repair, health, metrics, insight, not an entry point",
    ],
    ["packages/lab/src/a.ts", `import { x } from "./test-support/b.ts";`, "only tests import what lies in test-support"],
  ])("objects to %s with %s", (path, text, what) => {
    expect(layers(path, text)).toEqual([what]);
  });

  it.each([
    ["packages/core/src/state/a.ts", `import { x } from "../policy/claims.ts"; import { y } from "./b.ts";`],
    ["packages/core/src/index.ts", `export * from "./sync/ledger.ts";`],
    ["packages/core/src/sync/a.test.ts", `import { x } from "../state/store.ts";`],
    ["packages/lab/src/any/a.ts", `import { x } from "../other/b.ts";`],
    ["packages/host/src/testing/nft/a.ts", `import { x } from "../../nft/b.ts"; import { y } from "../../iptables/text/c.ts";`],
  ])("lets %s do %s", (path, text) => {
    expect(layers(path, text)).toEqual([]);
  });
});
