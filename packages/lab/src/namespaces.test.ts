import { describe, expect, it } from "vitest";
import { leftoversAmong, namespaceName, ownerOf } from "./namespaces.ts";

describe("namespace names", () => {
  it("carry their owner", () => {
    const name = namespaceName({ pid: 123, startTicks: 98_765 }, 2, "pod-1-1");
    expect(name).toBe("tl-123.247h-2-pod-1-1");
    expect(ownerOf(name)).toEqual({ pid: 123, startTicks: 98_765 });
  });

  it.each(["cni-123", "tl-", "tl-12-node1", "tl-x.y-1-node1", "my-tl-1.1-1-node1"])("of others are no business of ours: %s", (name) => {
    expect(ownerOf(name)).toBeUndefined();
  });
});

describe("leftoversAmong", () => {
  const startOf = (pid: number): number | undefined =>
    new Map([
      [10, 36],
      [11, 37],
    ]).get(pid);

  it.each([
    ["a live owner", "tl-10.10-1-node1", false],
    ["an owner that is gone", "tl-12.10-1-node1", true],
    ["a pid that another process has now", "tl-11.10-1-node1", true],
    ["somebody else's", "kind-node", false],
  ])("judges %s", (_, name, isLeftover) => {
    expect(leftoversAmong([name], startOf)).toEqual(isLeftover ? [name] : []);
  });
});
