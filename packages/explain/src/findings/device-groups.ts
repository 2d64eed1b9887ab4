import { listedNames } from "@turnout/core";
import { isOthersBridge } from "./parameter-findings.ts";
import type { HostSurvey } from "../readings/survey.ts";

/** Devices of which all have to be dropped for it to be a fault. */
export interface DeviceGroup {
  readonly devices: readonly string[];
  /** For people. */
  readonly named: string;
}

/** Devices that are named, at most. */
const NAMED_MAX = 4;

/**
 * Say by which devices packets of Services come and go. Pure.
 *
 * Shape: an uplink and a bridge of pods each by itself, devices that lead to one pod together: what a NetworkPolicy says of one pod is no fault.
 */
export function deviceGroups({ uplinks, devices }: Pick<HostSurvey, "uplinks" | "devices">): readonly DeviceGroup[] {
  const bridges = devices.filter(({ kind, name }) => kind === "bridge" && !isOthersBridge(name)).map(({ name }) => name);
  const shared = [...new Set([...uplinks, ...bridges])];
  const ofPods = devices
    .filter(({ namespace, master, name }) => namespace !== undefined && master === undefined && !shared.includes(name))
    .map(({ name }) => name);
  const each = shared.map((device) => ({ devices: [device], named: device }));
  if (ofPods.length < 2) return each;
  const named = `pods' devices (${listedNames(ofPods, NAMED_MAX)})`;
  return [...each, { devices: ofPods, named }];
}
