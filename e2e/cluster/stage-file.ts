import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { IPFamily } from "@turnout/core";
import { leftoversAmong, startTicksOf, sweepLeftovers, thisOwner } from "@turnout/lab";
import type { Owner } from "@turnout/lab";
import { until } from "../apiserver/until.ts";
import type { Folders } from "./programs.ts";
import { removeV1Cgroups, v1CgroupNames } from "./v1-cgroups.ts";

/** What another process has to know of a cluster to use it. */
export interface StageFacts {
  readonly kubernetes: string;
  readonly primary: IPFamily;
  readonly kubeconfig: string;
  readonly server: string;
  readonly fabric: string;
  /** Process 1 of each node. */
  readonly nodes: readonly { readonly name: string; readonly pid: number }[];
  /** The proxy that was deployed; absent: none was. */
  readonly proxy?: string;
}

interface Written extends StageFacts {
  readonly owner: Owner;
}

const END_MS = 120_000;

function fileOf({ run }: Folders): string {
  return join(run, "cluster.json");
}

/** Write what others need to know; the cluster is this process's, or the one that it was. */
export function writeStage(folders: Folders, facts: StageFacts): void {
  mkdirSync(folders.run, { recursive: true });
  writeFileSync(fileOf(folders), JSON.stringify({ ...facts, owner: ownerOf(folders) ?? thisOwner() }));
}

/** The cluster that lives; undefined: there is none. */
export function readStage(folders: Folders): StageFacts | undefined {
  return ownerOf(folders) === undefined ? undefined : read(folders);
}

/** End the cluster of whichever process, and remove what dead ones left; tells what it did. */
export async function removeStage(folders: Folders): Promise<string> {
  const owner = ownerOf(folders);
  if (owner !== undefined) {
    process.kill(owner.pid, "SIGTERM");
    await until(`process ${owner.pid} removes its cluster`, END_MS, () => startTicksOf(owner.pid) !== owner.startTicks);
  }
  const swept = sweepLeftovers();
  removeV1Cgroups(leftoversAmong(v1CgroupNames(), startTicksOf));
  rmSync(folders.run, { recursive: true, force: true });
  return owner === undefined && swept.length === 0 ? "there was no cluster" : "the cluster is removed";
}

/** The living process that made the cluster. */
function ownerOf(folders: Folders): Owner | undefined {
  const owner = read(folders)?.owner;
  return owner !== undefined && startTicksOf(owner.pid) === owner.startTicks ? owner : undefined;
}

function read(folders: Folders): Written | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(folders), "utf8")) as Written;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
