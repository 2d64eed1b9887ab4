import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { oneOf, runCommand } from "@turnout/house/command-line";
import { buildImage, RECIPES } from "@turnout/house/images";
import { CLEANUP, MANIFESTS, readManifests, RENDERED, VARIANTS } from "@turnout/house/manifests";
import { createNodeStage } from "./node-stage.ts";
import { Runner } from "./run-image.ts";
import type { Unpacked } from "./run-image.ts";
import type { Pod } from "./pod.ts";
import { unpackImage } from "./unpack.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const arch = process.arch === "arm64" ? "arm64" : "amd64";

/** The pods of a variant: where there is a server of its own, it comes first. */
function podsOf(name: string): readonly Pod[] {
  const manifests = readManifests(readFileSync(join(ROOT, MANIFESTS, RENDERED, `${name}.yaml`), "utf8"));
  const workloads = manifests.filter(({ kind }) => kind === "Deployment" || kind === "DaemonSet").toReversed();
  const pods = (workloads as unknown as readonly { readonly spec: { readonly template: { readonly spec: Pod } } }[]).map(
    (one) => one.spec.template.spec,
  );
  return pods.toSorted((a, b) => Number(b.containers[0]?.name === "server") - Number(a.containers[0]?.name === "server"));
}

/** Build and unpack an image, once. */
function imagesIn(folder: string): (image: string) => Unpacked {
  const unpacked = new Map<string, Unpacked>();
  return (image) => {
    const there = unpacked.get(image);
    if (there !== undefined) return there;
    const recipe = Object.values(RECIPES).find(({ repository }) => image.endsWith(`/${repository}:dev`));
    if (recipe === undefined) throw new Error(`${image} is none of our images`);
    const place = { registry: "turnout.local", tag: "dev", folder };
    const { path } = buildImage(recipe, [arch], place, { root: ROOT, cache: join(ROOT, "out/cache/images") });
    const made = unpackImage(path, join(folder, "images", recipe.name));
    unpacked.set(image, made);
    return made;
  };
}

async function execute(name: string, folder: string, images: (image: string) => Unpacked): Promise<void> {
  const files = join(folder, name);
  mkdirSync(files);
  const stage = createNodeStage(files, `turnout-image-${process.pid}`);
  const runner = new Runner(files, stage, images);
  try {
    for (const pod of podsOf(name)) await runner.start(pod);
    await runner.untilHealthy();
    const answer = await runner.askService((one) => one === "200");
    if (answer !== "200") throw new Error(`the Service answers ${answer}: ${runner.logs}`);
    const status = runner.status();
    if (!status.includes("healthy")) throw new Error(`turnout status says ${status}`);
    for (const seen of runner.look()) {
      if (!seen.hasThese || !seen.isReadOnly || !seen.noNewPrivileges) throw new Error(`not as its manifest says: ${JSON.stringify(seen)}`);
      say(
        `${name}: ${seen.name} runs as user ${seen.uid} with ${seen.capabilities.join(", ") || "no capability"}, on a read-only file system`,
      );
    }
    const codes = await runner.stop();
    if (Object.values(codes).some((code) => code !== 0)) throw new Error(`ended with ${JSON.stringify(codes)}`);
    for (const { initContainers = [] } of podsOf(CLEANUP)) await runner.start({ initContainers, containers: [] });
    const after = await runner.askService((one) => one !== "200");
    if (after === "200") throw new Error("the Service answers after the cleanup");
    say(`${name}: healthy, the Service answers, stopped with 0; after the cleanup it does not answer`);
  } finally {
    await runner.end();
    stage.remove();
  }
}

/** Play the variants; false when one failed. */
async function runAll(wanted: readonly string[]): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "turnout-try."));
  let isWell = true;
  try {
    const images = imagesIn(folder);
    for (const name of wanted) {
      try {
        await execute(name, folder, images);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        // Most kernels have it as a module; that of a small virtual machine may have none.
        const isNoIPVS = name === "ipvs" && reason.includes("this kernel has no IPVS");
        isWell &&= isNoIPVS;
        say(isNoIPVS ? `${name}: not played, as this kernel has no IPVS` : `${name}: FAILED: ${reason}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return isWell;
}

const NAMES = VARIANTS.map(({ name }) => name);
await runCommand({
  name: "e2e:images",
  usage: `npm run e2e:images -- [VARIANT]…\n  Build the images and play the pods of the rendered manifests with runc. Needs root.\n  variants: ${NAMES.join(", ")} (default: all)`,
  read: (args) => {
    const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} });
    return positionals.length === 0 ? NAMES : positionals.map((name) => oneOf("variant", name, NAMES));
  },
  execute: runAll,
});
