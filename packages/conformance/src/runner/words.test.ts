import { describe, expect, it } from "vitest";
import { formatWords, parseWords, serverName } from "./words.ts";

/** Their meaning is shown by scenarios.test.ts, which compares those of every scenario with the oracle. */
describe("the words of a probe", () => {
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
});
