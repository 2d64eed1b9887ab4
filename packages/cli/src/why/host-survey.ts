import { readFile } from "node:fs/promises";
import type { AskedPacket, Fate, Survey } from "@turnout/core";
import type { LinuxWorld } from "@turnout/host";
import { surveyPath } from "@turnout/host/survey";
import type { RulePlaces } from "../registry.ts";

/** What of the node matters to a survey. */
export interface SurveyedNode extends RulePlaces {
  readonly hostAddresses: readonly string[];
  readonly masqueradeBit: number;
  /** The ranges of its pods; undefined: an older proxy did not tell. */
  readonly podCIDRs: readonly string[] | undefined;
}

/** Look at what else decides about a packet on this host. @throws as {@link surveyPath}. */
export function surveyHost(
  world: Pick<LinuxWorld, "exec" | "netlink">,
  packet: AskedPacket,
  fate: Fate,
  node: SurveyedNode,
  signal: AbortSignal,
): Promise<Survey> {
  return surveyPath({ exec: world.exec, netlink: world.netlink, read: readIfThere }, { packet, fate, ...node }, signal);
}

/** What can't be read is taken to be absent: another kernel has other files. */
async function readIfThere(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").then(
    (text) => text,
    () => undefined,
  );
}
