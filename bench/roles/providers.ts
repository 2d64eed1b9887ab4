import { mkdir, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createApiServer } from "@turnout/lab";
import type { Harness } from "../line-channel.ts";
import { writeList, writeServices, writeWorkload } from "../workload-files.ts";
import { nodeObject, objectsOf, serviceCIDRObject, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { STRIDE } from "./backend-run.ts";

/** What to provide a daemon with, and how often to change it. */
export interface ProviderParameters {
  readonly shape: Shape;
  /** Of the kubeconfig to write, or of the directory with the objects. */
  readonly path: string;
  readonly changes: number;
  readonly pauseMs: number;
}

/** Serve a workload as an API server, then change one endpoint after another. Phases: `provided`, `changed`. */
export async function apiServer({ shape, path, changes, pauseMs }: ProviderParameters, harness: Harness): Promise<void> {
  const server = await createApiServer();
  for (const object of objectsOf(shape)) server.apply(object);
  await writeFile(path, server.kubeconfig());
  await harness.reached("provided");
  for (let k = 0; k < changes; k++) {
    server.apply(sliceObject((k * STRIDE) % shape.services, shape, { missing: k % shape.endpoints }));
    await sleep(pauseMs);
  }
  await harness.reached("changed");
  await server.close();
}

/** Write a workload as JSON Lists, then rewrite one file after another. Phases: `provided`, `changed`. */
export async function fileWriter({ shape, path, changes, pauseMs }: ProviderParameters, harness: Harness): Promise<void> {
  await mkdir(path);
  await writeList(path, "cluster", [nodeObject(), serviceCIDRObject()]);
  const files = await writeWorkload(path, shape);
  await harness.reached("provided");
  for (let k = 0; k < changes; k++) {
    await writeServices(path, shape, k % files, k);
    await sleep(pauseMs);
  }
  await harness.reached("changed");
}
