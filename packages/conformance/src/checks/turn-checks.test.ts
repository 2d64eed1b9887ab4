import { describe, expect, it } from "vitest";
import { objectId } from "@turnout/core";
import type { Delta, KernelObject } from "@turnout/core";
import { rememberDeltas, withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import { Findings } from "./findings.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { STAGE_SETTINGS } from "../runner/stage.ts";
import { checkTurns } from "./turn-checks.ts";

/** A backend that does one thing in each turn; it defers all it is told, and counts its turns. */
function oneByOne(inner: AnyBackend, onTurn: (deferred: number) => void, atOnce: number): Partial<AnyBackend> {
  const { plan, deltaOf } = rememberDeltas(inner);
  return {
    plan,
    async apply(planned, signal, turn) {
      const delta = deltaOf(planned);
      if (delta === undefined || turn === undefined) return await inner.apply(planned, signal);
      const { now, later } = cut(delta, atOnce);
      const outcome = now.put.length + now.remove.length === 0 ? {} : await inner.apply(inner.plan(now), signal);
      onTurn(later.length);
      return { ...outcome, deferred: new Set(later.map(objectId)) };
    },
  };
}

function cut(delta: Delta<KernelObject>, count: number): { readonly now: Delta<KernelObject>; readonly later: readonly KernelObject[] } {
  const { put, remove } = delta;
  const now = { ...delta, remove: remove.slice(0, count), put: put.slice(0, Math.max(0, count - remove.length)) };
  return { now, later: [...remove.slice(now.remove.length), ...put.slice(now.put.length).map(({ after }) => after)] };
}

async function findingsOf(atOnce: number): Promise<{ readonly findings: Findings; readonly deferred: readonly number[] }> {
  const deferred: number[] = [];
  const findings = new Findings();
  const subject = withBackend((inner) => oneByOne(inner, (count) => void deferred.push(count), atOnce))({
    module: referenceBackend,
    createFakeHost: createReferenceHost,
  });
  await checkTurns(subject, { settings: STAGE_SETTINGS }, findings);
  return { findings, deferred };
}

describe("turns that are over at once", () => {
  it("are enough for a backend that does one thing in each", async () => {
    const { findings, deferred } = await findingsOf(1);
    expect(findings.list).toEqual([]);
    expect(Math.max(...deferred)).toBeGreaterThan(5);
  });

  it("are not for one that does nothing in any: the sync fails", async () => {
    const { findings } = await findingsOf(0);
    expect(findings.list[0]).toMatchObject({ kind: "error", scenario: "turns that are over at once" });
    expect(findings.list[0]?.got).toContain("deferred everything");
  });
});
