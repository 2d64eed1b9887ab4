import type { RawObject } from "@turnout/core/testing";
import { fieldAt } from "./probe-packet.ts";

/** Say what a Node object is taken to be: what it says no more, or is gone with it, is as it was. */
export function lastingRawNode(before: RawObject | undefined, now: RawObject | undefined): RawObject | undefined {
  if (now === undefined || before === undefined) return now ?? before;
  const podCIDRs = filled(fieldAt(before, "spec", "podCIDRs"), fieldAt(now, "spec", "podCIDRs"));
  const addresses = filled(fieldAt(before, "status", "addresses"), fieldAt(now, "status", "addresses"));
  return { ...now, spec: { ...object(now["spec"]), podCIDRs }, status: { ...object(now["status"]), addresses } };
}

function filled(before: unknown, now: unknown): unknown {
  return Array.isArray(now) && now.length > 0 ? now : (before ?? now);
}

function object(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}
