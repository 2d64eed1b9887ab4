import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createApiServer } from "@turnout/lab";
import type { Harness } from "../line-channel.ts";
import { nodeObject, serviceCIDRObject, serviceObject, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** What to provide a daemon with, and how often to change it. */
export interface ProviderParameters {
  readonly shape: Shape;
  /** Of the kubeconfig to write, or of the directory with the objects. */
  readonly path: string;
  readonly changes: number;
  readonly pauseMs: number;
}

const STRIDE = 7919;

/** Serve a workload as an API server, then change one endpoint after another. Phases: `provided`, `changed`. */
export async function apiServer({ shape, path, changes, pauseMs }: ProviderParameters, harness: Harness): Promise<void> {
  const server = await createApiServer();
  for (const object of [nodeObject(), serviceCIDRObject()]) server.apply(object);
  for (let index = 0; index < shape.services; index++) {
    server.apply(serviceObject(index));
    server.apply(sliceObject(index, shape));
  }
  await writeFile(path, server.kubeconfig());
  await harness.reached("provided");
  for (let k = 0; k < changes; k++) {
    server.apply(sliceObject((k * STRIDE) % shape.services, shape, { missing: k % shape.endpoints }));
    await sleep(pauseMs);
  }
  await harness.reached("changed");
  await server.close();
}
