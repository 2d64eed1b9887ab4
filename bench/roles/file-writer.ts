import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Harness } from "../line-channel.ts";
import { nodeObject, serviceCIDRObject, serviceObject, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import type { ProviderParameters } from "./api-server.ts";

const SERVICES_PER_FILE = 100;

/** Write a workload as JSON Lists, 100 services a file, then rewrite one file after another. Phases: `provided`, `changed`. */
export async function fileWriter({ shape, path, changes, pauseMs }: ProviderParameters, harness: Harness): Promise<void> {
  await mkdir(path);
  await writeList(path, "cluster", [nodeObject(), serviceCIDRObject()]);
  const files = Math.ceil(shape.services / SERVICES_PER_FILE);
  for (let file = 0; file < files; file++) await writeList(path, `services-${file}`, objectsOf(file, shape));
  await harness.reached("provided");
  for (let k = 0; k < changes; k++) {
    await writeList(path, `services-${k % files}`, objectsOf(k % files, shape, k));
    await sleep(pauseMs);
  }
  await harness.reached("changed");
}

/** The objects of one file; with `changed`, one of its slices lacks an endpoint. */
function objectsOf(file: number, shape: Shape, changed?: number): readonly unknown[] {
  const first = file * SERVICES_PER_FILE;
  const indexes = Array.from({ length: Math.min(SERVICES_PER_FILE, shape.services - first) }, (_, k) => first + k);
  const unlucky = changed === undefined ? undefined : first + (changed % indexes.length);
  return indexes.flatMap((index) => [
    serviceObject(index),
    sliceObject(index, shape, index === unlucky ? { missing: (changed ?? 0) % shape.endpoints } : {}),
  ]);
}

async function writeList(directory: string, name: string, items: readonly unknown[]): Promise<void> {
  // Written aside and moved into place, as a careful writer does.
  const aside = join(directory, `.${name}`);
  await writeFile(aside, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await rename(aside, join(directory, `${name}.json`));
}
