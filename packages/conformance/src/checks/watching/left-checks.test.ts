import type { LeftObjects, SeenPart } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { withBackend } from "../../runner/changed-subject.ts";
import { createReferenceHost } from "../../reference/reference-host.ts";
import { referenceBackend } from "../../reference/reference-backend.ts";
import { checkBackend } from "../check.ts";

/** What the kit says of IPv4 where something else is told of what was left, and what it did not ask. */
async function found(
  change: (left: LeftObjects) => LeftObjects | undefined,
): Promise<readonly [found: readonly string[], notAsked: string]> {
  const broken = withBackend((inner) => ({
    async *watch(signal) {
      for await (const event of inner.watch?.(signal) ?? []) {
        if (event.kind !== "drift" || event.left === undefined) yield event;
        else {
          const { left: _, ...drift } = event;
          const left = change(event.left);
          yield left === undefined ? drift : { ...drift, left };
        }
      }
    },
  }))({ module: referenceBackend, createFakeHost: createReferenceHost });
  const { findings, notAsked } = await checkBackend(broken.module, broken.createFakeHost, []);
  return [findings.flatMap(({ family, what, got }) => (family === "IPv4" ? `${what}: ${got}` : [])), notAsked.join()];
}

const seen = (left: LeftObjects): SeenPart => left as SeenPart;

describe("what the kit says of what a foreign change has left", () => {
  it("nothing, where it is as observing shows", async () => {
    expect(await found((left) => left)).toEqual([[], ""]);
  });

  it("that it wasn't asked about, where nobody tells", async () => {
    expect(await found(() => undefined)).toEqual([[], "what a foreign change left: watch() tells of none of it (left)"]);
  });

  it.each<readonly [name: string, change: (left: LeftObjects) => LeftObjects, says: RegExp]>([
    ["less than there is", (left) => ({ ...seen(left), objects: new Map() }), /^left of a foreign change: nothing$/],
    ["that nothing is left", () => "nothing", /^left of a foreign change: nothing$/],
    ["that nothing was touched", () => new Map(), /^left of a foreign change: /],
    [
      "what was never current",
      (left) => ({ ...seen(left), isCurrent: () => false }),
      /^isCurrent\(\) of what was seen, before anything is written: false$/,
    ],
    [
      "what stays current",
      (left) => ({ ...seen(left), isCurrent: () => true }),
      /^isCurrent\(\) of what was seen, once something was written since: true$/,
    ],
  ])("%s", async (_name, change, says) => {
    const [reported] = await found(change);
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatch(says);
  });
});
