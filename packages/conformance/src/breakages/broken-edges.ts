import type { KernelObject } from "@turnout/core";
import type { FakeHost, Trace } from "../runner/fake-host.ts";
import { HOST_ADDRESSES, UPLINK } from "../runner/stage.ts";
import { noteDone, rememberDeltas, withBackend, withHost } from "../runner/changed-subject.ts";
import { withNode, withRows } from "./broken-backend.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";
import { clear } from "./broken-recovery.ts";

/** Elements that a batch of a careless backend holds. */
const BATCH = 500;
const THREE_HOURS_S = 10_800;

/** Defects that show only in numbers, at bounds, or with addresses and marks that are rarely met. */
export const BROKEN_EDGES: Readonly<Record<string, Defect>> = {
  "gives one of three endpoints three times the share of another": [
    "R-68",
    withHost((host) => ({
      trace(packet, random) {
        const [one, other] = [host.trace(packet, random), host.trace(packet, random)];
        return random() < 0.75 && nameOf(other) < nameOf(one) ? other : one;
      },
    })),
  ],
  "keeps only two source ranges": [
    "R-39",
    withRows((row) => ({
      ...row,
      destinations: row.destinations.map((one) =>
        one.sourceRanges === undefined ? one : { ...one, sourceRanges: one.sourceRanges.slice(0, 2) },
      ),
    })),
  ],
  [`loses what is beyond ${BATCH} in one change`]: [
    "R-22, R-58",
    withBackend((inner) => ({ plan: (delta) => inner.plan({ ...delta, put: delta.put.slice(0, BATCH) }) })),
    ["verdict", "not-idempotent", "error"],
  ],
  "writes again what is as it was": ["R-58", withBackend(writingAll), ["contract"], "written"],
  "cuts affinity at three hours": [
    "R-08",
    withRows((row) => ({
      ...row,
      affinitySeconds: row.affinitySeconds === undefined ? undefined : Math.min(row.affinitySeconds, THREE_HOURS_S),
    })),
    ["affinity"],
  ],
  "forgets the hairpin of pods elsewhere": ["R-36", withoutHairpin(({ link }) => link === UPLINK)],
  "knows the host by its first address alone": [
    "R-28, R-32",
    withHost((host) => ({
      trace(packet, random) {
        const trace = host.trace(packet, random);
        const isKnown = packet.link !== "" || HOST_ADDRESSES[packet.family].includes(packet.source);
        return isKnown || trace.is !== "forward" ? trace : { ...trace, masquerade: false };
      },
    })),
  ],
  "uses another mark bit": [
    "R-69",
    withNode(({ node, host }) => {
      const masqueradeBit = (node.settings.masqueradeBit + 1) % 32;
      return { node: { ...node, settings: { ...node.settings, masqueradeBit } }, host };
    }),
  ],
};

/** With every change it writes all that should be in force from nothing, however little has changed. */
function writingAll(inner: AnyBackend): Partial<AnyBackend> {
  const { plan, deltaOf } = rememberDeltas(inner);
  let known = new Map<string, KernelObject>();
  return {
    plan,
    async observe(signal) {
      const observed = await inner.observe(signal);
      known = new Map(observed?.objects);
      return observed;
    },
    async apply(planned, signal) {
      const delta = deltaOf(planned);
      if (delta === undefined) return await inner.apply(planned, signal);
      noteDone(known, delta);
      const put = [...known.values()].map((after) => ({ after }));
      await clear(inner, delta.nowMs, signal);
      return await inner.apply(inner.plan({ put, remove: [], lingering: [], nowMs: delta.nowMs }), signal);
    },
  };
}

/** It doesn't masquerade who gets to himself, where that is so for a packet. */
export function withoutHairpin(isSo: (packet: Parameters<FakeHost["trace"]>[0]) => boolean): Defect[1] {
  return withHost((host) => ({
    trace(packet, random) {
      const trace = host.trace(packet, random);
      const isHairpin = trace.endpoint?.startsWith(packet.family === "IPv4" ? `${packet.source}:` : `[${packet.source}]:`) === true;
      return isHairpin && isSo(packet) ? { ...trace, masquerade: false } : trace;
    },
  }));
}

function nameOf({ endpoint = "" }: Trace): string {
  return endpoint;
}
