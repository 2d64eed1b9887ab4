import { describe, expect, it } from "vitest";
import { outputJson, withPresentNames } from "./output-json.ts";

describe("-o json", () => {
  it("prints renamed fields under both names, and lists the former ones", () => {
    const printed: unknown = JSON.parse(outputJson({ causes: [{ id: "x", fix: "do it" }], families: [{ appliedSinceMs: 7 }] }));
    expect(printed).toEqual({
      causes: [{ id: "x", fix: "do it", mend: "do it" }],
      families: [{ appliedSinceMs: 7, inForceSinceMs: 7 }],
      deprecatedFields: { mend: "fix", inForceSinceMs: "appliedSinceMs" },
    });
  });

  it("lists nothing where nothing was renamed", () => {
    expect(outputJson({ a: [1, null] })).toBe('{"a":[1,null]}\n');
  });

  it("is read under present names from a proxy of the release before", () => {
    expect(JSON.parse('{"families":[{"inForceSinceMs":7}],"sourceTroubles":{}}', withPresentNames)).toMatchObject({
      families: [{ appliedSinceMs: 7 }],
      sourceProblems: {},
    });
  });
});
