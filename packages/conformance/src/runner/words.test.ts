import { describe, expect, it } from "vitest";
import { formatWords, parseWords, seenOfVerdict, serverName } from "./words.ts";

describe("the words of a probe", () => {
  it.each([
    ["refused", "reject"],
    ["dropped", "drop"],
    ["untouched", "pass"],
  ] as const)("%s means %s", (words, is) => {
    expect(parseWords(words)).toEqual({ is, groups: [] });
    expect(formatWords({ is, groups: [] })).toBe(words);
  });

  it("name the servers and whom they saw", () => {
    expect(parseWords("pod-1-1 saw node1, pod-2-1 pod-2-2 saw pod-1-1")).toEqual({
      is: "forward",
      groups: [
        { servers: ["pod-1-1"], saw: "node1" },
        { servers: ["pod-2-1", "pod-2-2"], saw: "pod-1-1" },
      ],
    });
  });

  it.each([
    "",
    "pod-1-1",
    "saw node1",
    "pod-1-1 saw",
    "pod-1-1 saw node1 node2",
    "pod-1-1 saw node1,pod-2-1 saw x",
    "pod-1-1  saw x",
    "Refused",
  ])("are not %j", (words) => {
    expect(() => parseWords(words)).toThrow("not the words");
  });

  it("name a server once", () => {
    expect(() => parseWords("pod-1-1 saw node1, pod-1-1 saw client1")).toThrow("twice");
  });

  it("have one form for what means the same", () => {
    const words = formatWords(parseWords("pod-2-1 saw client1, pod-1-2 pod-1-1 saw client1, pod-1-3 saw node1"));
    expect(words).toBe("pod-1-1 pod-1-2 pod-2-1 saw client1, pod-1-3 saw node1");
    expect(formatWords(parseWords(words))).toBe(words);
  });

  it.each([
    ["10.1.1.1:8080", "pod-1-1"],
    ["[fd00:1:2::3]:8080", "pod-2-3"],
    ["10.1.1.1:8081", "pod-1-1:8081"],
    ["[fd00:1:2::3]:8081", "pod-2-3:8081"],
    ["10.1.9.9:8080", "10.1.9.9"],
    ["[fd00:1:9::9]:8080", "fd00:1:9::9"],
    ["[fd00:1:9::9]:81", "[fd00:1:9::9]:81"],
  ])("say %s as %s", (endpoint, name) => {
    expect(serverName(endpoint)).toBe(name);
  });

  it("say a verdict", () => {
    const answers = [
      { endpoint: "10.1.1.1:8080", masquerade: true },
      { endpoint: "10.1.2.1:8080", masquerade: false },
    ];
    expect(formatWords(seenOfVerdict({ is: "forward", answers, because: [] }, "10.1.1.1"))).toBe("pod-1-1 saw node1, pod-2-1 saw pod-1-1");
    expect(formatWords(seenOfVerdict({ is: "drop", because: [] }, "10.1.1.1"))).toBe("dropped");
  });
});
