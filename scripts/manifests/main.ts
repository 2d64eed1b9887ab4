import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { runCommand } from "../command-line.ts";
import { buildTools, TOOLS } from "./tools.ts";
import type { RunTool } from "./tools.ts";
import { CLEANUP, inOrder, MANIFESTS, readManifests, RENDERED, RENDERED_OF, sourcesChecksum, VARIANTS } from "./variants.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** What some settings of the chart lead to: arguments, images and mounts, as text. */
const SETTINGS: readonly { readonly set: readonly string[]; readonly has: readonly string[] }[] = [
  {
    set: ["extraArgs={--conntrack-max-per-core=0}"],
    has: [
      '["run","--init-only","--config=/var/lib/kube-proxy/config.conf","--hostname-override=$(NODE_NAME)","--backend=nft","--conntrack-max-per-core=0"]',
      '["run","--config=/var/lib/kube-proxy/config.conf","--hostname-override=$(NODE_NAME)","--backend=nft","--conntrack-max-per-core=0"]',
    ],
  },
  {
    set: ["layout=central", "central.certificate=/etc/node/one.pem", `image.digest=${digest("1")}`, `server.digest=${digest("2")}`],
    has: ["--api-key=/etc/node/one.pem", 'path: "/etc/node"', `turnout-nft@${digest("1")}`, `turnout-serve@${digest("2")}`],
  },
];

function digest(figure: string): string {
  return `sha256:${figure.repeat(64)}`;
}

/** @throws {Error} that names a setting which does not lead to what it should. */
function checkSettings(run: RunTool, chart: string): void {
  for (const { set, has } of SETTINGS) {
    const text = run("helm", ["template", "turnout", chart, ...set.flatMap((one) => ["--set", one])]);
    for (const one of has) if (!text.includes(one)) throw new Error(`the chart with ${set.join(", ")} has no ${one}`);
  }
}

/** Render everything by kustomize and by helm, compare, and keep what kustomize made. @throws {Error} when the two differ; what a tool says. */
function render(): void {
  const run = buildTools(ROOT, say);
  const [folder, chart] = [join(ROOT, MANIFESTS, RENDERED), join(MANIFESTS, "chart")];
  say(run("helm", ["lint", "--strict", chart]).trim());
  checkSettings(run, chart);
  mkdirSync(folder, { recursive: true });
  for (const { name, values } of VARIANTS) {
    const text = run("kustomize", ["build", join(MANIFESTS, "overlays", name)]);
    const settings = Object.entries(values).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    const other = run("helm", ["template", "turnout", chart, "--namespace", "kube-system", ...settings]);
    const [kustomize, helm] = [text, other].map((one) => inOrder(readManifests(one)));
    if (!isDeepStrictEqual(kustomize, helm)) {
      mkdirSync(join(ROOT, "out"), { recursive: true });
      writeFileSync(join(ROOT, "out", `${name}.helm.yaml`), other);
      throw new Error(`${name}: the chart makes something else than the overlay: out/${name}.helm.yaml`);
    }
    writeFileSync(join(folder, `${name}.yaml`), text);
    say(`${name}: ${kustomize?.length ?? 0} objects, the same from kustomize and helm`);
  }
  writeFileSync(join(folder, `${CLEANUP}.yaml`), run("kustomize", ["build", join(MANIFESTS, "overlays", CLEANUP)]));
  writeFileSync(join(ROOT, MANIFESTS, RENDERED_OF), `${JSON.stringify({ sources: sourcesChecksum(ROOT), ...TOOLS }, undefined, 2)}\n`);
}

const USAGE = `npm run manifests
  render deploy/kubernetes by kustomize and by helm, which Go builds, lint, compare and keep the result
`;

await runCommand({ name: "manifests", usage: USAGE, read: (args) => parseArgs({ args: [...args] }), execute: render });
