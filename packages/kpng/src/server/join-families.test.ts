import { describe, expect, test } from "vitest";
import { joinFamilies, type Draft } from "./join-families.ts";

const draft = (ip: string, podName?: string, content: string = "same"): Draft => ({ ip, podName, content });

describe("joining the addresses of pods", () => {
  test.each<[what: string, drafts: readonly Draft[], joined: readonly (readonly [ips: readonly string[], podName: string | undefined])[]]>([
    ["both families of a pod are one endpoint", [draft("2001:db8::1", "a"), draft("10.0.0.1", "a")], [[["10.0.0.1", "2001:db8::1"], "a"]]],
    [
      "what differs by family is two, of which one has the pod's name",
      [draft("2001:db8::1", "a", "other"), draft("10.0.0.1", "a")],
      [
        [["10.0.0.1"], "a"],
        [["2001:db8::1"], undefined],
      ],
    ],
    [
      "two addresses of one family are two, of which one has the pod's name",
      [draft("10.0.0.2", "a"), draft("10.0.0.1", "a"), draft("2001:db8::1", "a")],
      [
        [["10.0.0.1", "2001:db8::1"], "a"],
        [["10.0.0.2"], undefined],
      ],
    ],
    [
      "addresses of no pod are each by themselves",
      [draft("10.0.0.1"), draft("2001:db8::1")],
      [
        [["10.0.0.1"], undefined],
        [["2001:db8::1"], undefined],
      ],
    ],
  ])("%s", (_what, drafts, joined) => {
    for (const some of [drafts, drafts.toReversed()]) {
      expect(joinFamilies(some).map(({ ips, podName }) => [ips, podName])).toEqual(joined);
    }
  });
});
