import type { Counts } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { withBackend } from "../runner/changed-subject.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { checkBackend } from "./check.ts";

type Counted = ReadonlyMap<string, Counts>;

/** What the kit says of IPv4 counts that are changed. */
async function found(change: (counted: Counted, asked: number) => Counted): Promise<readonly string[]> {
  let asked = 0;
  const broken = withBackend((inner) => ({
    counts: async (signal, isKnown) => change((await inner.counts?.(signal, isKnown)) ?? new Map<string, Counts>(), ++asked),
  }))({ module: referenceBackend, createFakeHost: createReferenceHost });
  const { findings } = await checkBackend(broken.module, broken.createFakeHost, []);
  return findings.flatMap(({ family, what, expected, got }) => (family === "IPv4" ? `${what}: ${got} instead of ${expected}` : []));
}

const each = (counted: Counted, change: (counts: Counts) => Counts): Counted =>
  new Map(Array.from(counted, ([id, counts]) => [id, change(counts)]));

describe("what the kit says of counts", () => {
  it("nothing, where each Service has its own", async () => {
    expect(await found((counted) => counted)).toEqual([]);
  });

  it("that grow for another Service", async () => {
    const places = ["destination 10.96.0.1 80/TCP", "destination 10.96.0.2 80/TCP"];
    const swapped = (counted: Counted): Counted =>
      new Map(Array.from(counted, ([id, counts]) => [places[1 - places.indexOf(id)] ?? id, counts]));
    const reported = await found(swapped);
    expect(reported[0]).toBe(
      "connections that counts() tells of after 7 to one Service: 0 more instead of 7 more, as the host has counted",
    );
    expect(reported[1]).toBe("connections that counts() tells of another Service: 7 more of kit/counted-2 instead of none more");
  });

  it("that shrink", async () => {
    const forgetful = await found((counted, asked) => (asked === 3 ? new Map() : counted));
    expect(forgetful).toContain(
      "connections that counts() tells of destination 10.96.0.1 80/TCP, while nothing changes: 0 instead of 7 or more",
    );
  });

  it("that are no whole numbers, or have a name that nobody knows", async () => {
    expect((await found((counted) => each(counted, () => ({ connections: 0.5 }))))[0]).toMatch(
      /: 0\.5 instead of a whole number that is not negative$/,
    );
    expect((await found((counted) => each(counted, (counts) => ({ ...counts, smiles: 1 }))))[0]).toMatch(
      /: smiles instead of a count that the contract knows$/,
    );
  });

  it("of what no row owns, or not any more", async () => {
    const gone = new Map<string, Counts>();
    const reported = await found((counted) => {
      for (const [id, counts] of counted) gone.set(id, counts);
      return new Map(gone);
    });
    expect(reported).toEqual(["what counts() names: destination 10.96.0.2 80/TCP instead of objects that rows own"]);
  });
});
