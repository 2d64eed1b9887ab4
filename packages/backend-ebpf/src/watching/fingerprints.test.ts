import type { FingerprintChanges } from "@turnout/host";
import { expect, it } from "vitest";
import { explainFingerprints, touchedParts } from "./fingerprints.ts";

const UNKNOWN = "; the kernel does not tell by whom";
const changed = (
  ...signs: readonly (readonly [sign: string, before?: string | undefined, now?: string | undefined])[]
): FingerprintChanges => new Map(signs.map(([sign, before, now]) => [sign, { before, now }]));

it.each<[string, readonly [sign: string, before?: string | undefined, now?: string | undefined], string]>([
  ["a link that was detached", ["link turnout_conn4", "7 at cgroup 1", "7 at cgroup 0"], "turnout_conn4 was detached or replaced"],
  ["a map that was emptied", ["map services", "96", "0"], "map services has fewer elements"],
  ["a map with something added", ["map services", "96", "192"], "map services has more elements"],
  ["a value that was replaced", ["content endpoints 3", "a", "b"], "elements of map endpoints were replaced"],
  ["a link's pin that is gone", ["pin turnout_conn4", "there", undefined], "the pin of turnout_conn4 is gone"],
  ["a link that is pinned again", ["pin turnout_conn4", undefined, "there"], "turnout_conn4 is pinned again"],
  ["a map's pin that is gone", ["pins v1-0123456789abcdef", "affinity services", "services"], "pins came or went in v1-0123456789abcdef"],
  ["a mark that is gone", ["pins ", "serving-IPv4", ""], "pins came or went in the folder of all pins"],
])("%s is told in words", (_, change, text) => {
  expect(explainFingerprints(changed(change))).toBe(`${text}${UNKNOWN}`);
});

it("of many changes three are told, each once", () => {
  const signs = ["content services 1", "content services 2", "map endpoints", "link a", "link b", "link c"].map((sign) => [sign] as const);
  expect(explainFingerprints(changed(...signs))).toBe(
    `elements of map services were replaced, map endpoints has more elements, a was detached or replaced and 2 more${UNKNOWN}`,
  );
});

it("what was touched is told by parts, and all pins by one sign of them", () => {
  const signs = ["content services 1", "content services 2", "map endpoints", "content source_ranges 1", "link a", "pin b"].map(
    (sign) => [sign] as const,
  );
  const { maps, attached, hasOtherPins } = touchedParts(changed(...signs));
  expect([...maps]).toEqual([
    ["services", new Set([1, 2])],
    ["endpoints", "all"],
    ["source_ranges", "all"],
  ]);
  expect([[...attached], hasOtherPins]).toEqual([["a", "b"], false]);
  expect(touchedParts(changed(["pins v1-0"])).hasOtherPins).toBe(true);
});
