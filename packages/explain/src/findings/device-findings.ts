import type { Device } from "@turnout/host";
import type { Finding } from "./finding.ts";
import type { HostSurvey } from "../readings/survey.ts";

/** Devices that are named, at most. */
const NAMED_MAX = 4;

/** What is said of devices that lead to pods, and by which nothing goes. Pure. */
export function deviceFindings({ devices }: HostSurvey): readonly Finding[] {
  const lost = devices.filter(({ namespace, isUp, hasCarrier }) => namespace !== undefined && !(isUp && hasCarrier));
  if (lost.length === 0) return [];
  const down = lost.find(({ isUp }) => !isUp);
  const named = lost.slice(0, NAMED_MAX).map((device) => stateText(device, devices));
  const up = down === undefined ? "" : `ip link set ${down.name} up; `;
  return [
    {
      id: "pod-device-down",
      severity: "risk",
      what: "nothing gets to pods, or from them, by devices that are down or without carrier",
      because: `${named.join(", ")}${lost.length > named.length ? ` and ${lost.length - named.length} more` : ""}`,
      fix: `${up}where a device has no carrier, its other end is down or gone: delete the pod, so that it is made again`,
    },
  ];
}

function stateText({ name, master, isUp }: Device, devices: readonly Device[]): string {
  const bridge = devices.find(({ index }) => index === master)?.name;
  return `${name}${bridge === undefined ? "" : ` (a port of ${bridge})`} ${isUp ? "has no carrier" : "is down"}`;
}
