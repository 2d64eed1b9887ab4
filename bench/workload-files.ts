import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceObject, sliceObject } from "./workload.ts";
import type { Shape } from "./workload.ts";

const SERVICES_PER_FILE = 100;

/** Write a workload's Services as JSON Lists, 100 a file; how many files. */
export async function writeWorkload(directory: string, shape: Shape): Promise<number> {
  const files = Math.ceil(shape.services / SERVICES_PER_FILE);
  for (let file = 0; file < files; file++) await writeServices(directory, shape, file);
  return files;
}

/** Write one of its files; with `changed`, one of its slices lacks an endpoint. */
export async function writeServices(directory: string, shape: Shape, file: number, changed?: number): Promise<void> {
  const first = file * SERVICES_PER_FILE;
  const indexes = Array.from({ length: Math.min(SERVICES_PER_FILE, shape.services - first) }, (_, k) => first + k);
  const unlucky = changed === undefined ? undefined : first + (changed % indexes.length);
  const objects = indexes.flatMap((index) => [
    serviceObject(index),
    sliceObject(index, shape, index === unlucky ? { missing: (changed ?? 0) % shape.endpoints } : {}),
  ]);
  await writeList(directory, `services-${file}`, objects);
}

/** Write a List aside and move it into place, as a careful writer does. */
export async function writeList(directory: string, name: string, items: readonly unknown[]): Promise<void> {
  const aside = join(directory, `.${name}`);
  await writeFile(aside, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await rename(aside, join(directory, `${name}.json`));
}
