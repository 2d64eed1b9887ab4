import { readFile } from "node:fs/promises";
import type { AskedPacket, Fate, IPFamily, Survey } from "@turnout/core";
import type { LinuxWorld } from "@turnout/host";
import { surveyPath } from "./path.ts";
import { hostSurveyFiles } from "../readings/files.ts";
import { turnoutCauses } from "../readings/turnout-processes.ts";
import { readExternalTables } from "../tables/external-tables.ts";
import type { ExternalTables } from "../tables/external-tables.ts";

/** Where a backend's rules are. */
export type RulePlaces = Readonly<Required<Record<"hasKubeChains" | "servesAtInput" | "answersItself" | "translatesAtDevices", boolean>>>;

/** What of the node matters to a survey. */
export interface SurveyedNode extends RulePlaces {
  readonly hostAddresses: readonly string[];
  readonly masqueradeBit: number;
  /** The ranges of its pods; undefined: an older proxy did not tell. */
  readonly podCIDRs: readonly string[] | undefined;
}

/** What a host is surveyed with. */
export interface SurveyTools extends Pick<LinuxWorld, "exec" | "netlink"> {
  /** Of {@link externalTables}, where that was begun before. */
  readonly external?: Promise<ExternalTables>;
}

/** Read the rules of other programs, which takes as long as asking a proxy does, and needs nothing of what that answers. */
export function externalTables({ exec, netlink }: SurveyTools, family: IPFamily, signal: AbortSignal): Promise<ExternalTables> {
  return readExternalTables({ exec, netlink, read: readIfThere }, family, signal);
}

/** Look at what else decides about a packet on this host, and whether other Turnouts run, or one is stopped. @throws as {@link surveyPath}. */
export async function surveyPacket(
  { exec, netlink, external }: SurveyTools,
  packet: AskedPacket,
  fate: Fate,
  node: SurveyedNode,
  signal: AbortSignal,
): Promise<Survey> {
  const [survey, others] = await Promise.all([
    surveyPath({ exec, netlink, read: readIfThere, ...(external === undefined ? {} : { external }) }, { packet, fate, ...node }, signal),
    turnoutCauses(hostSurveyFiles),
  ]);
  return { ...survey, causes: [...survey.causes, ...others] };
}

/** What can't be read is taken to be absent: another kernel has other files. */
async function readIfThere(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").then(
    (text) => text,
    () => undefined,
  );
}
