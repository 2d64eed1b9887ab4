import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { hasNoNamespaces } from "../commands/demo-run.ts";
import { turnoutArguments } from "./proxy.ts";

/** Start `turnout demo` from its sources. */
function startDemo(...args: readonly string[]): {
  readonly out: () => string;
  readonly namespaces: () => readonly string[];
  end(signal?: NodeJS.Signals): Promise<number | null>;
} {
  const child = spawn(process.execPath, [...turnoutArguments(), "demo", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => void (text += chunk.toString()));
  return {
    out: () => text,
    namespaces: () => readdirSync("/run/netns").filter((name) => name.startsWith(`tl-${child.pid}.`)),
    end: async (signal) => {
      const ended = once(child, "close");
      if (signal !== undefined) child.kill(signal);
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}

describe("turnout demo", needs("root", "netns", "nft>=1.0.1", "ip"), () => {
  test("plays on this machine without one failed request and leaves nothing", { timeout: 180_000 }, async () => {
    const demo = startDemo();
    const code = await demo.end();
    expect(demo.out()).toMatch(/\n✓ [\d,]+ requests in [\d.]+ s, 0 failed; 8 connections kept open, 0 broken\.\n$/);
    expect([code, demo.namespaces()]).toEqual([0, []]);
  });

  test("interrupted it says so, exits 1 and leaves nothing", { timeout: 180_000 }, async () => {
    const demo = startDemo();
    while (!demo.out().includes("Sending traffic")) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(demo.namespaces()).toHaveLength(12);
    const code = await demo.end("SIGINT");
    expect(demo.out()).toMatch(/turnout: \[canceled\] the demo was stopped, everything it made is removed\n$/);
    expect([code, demo.namespaces()]).toEqual([1, []]);
  });
});

describe("turnout demo on loopback", () => {
  test("plays without one failed request and leaves nothing", { timeout: 180_000 }, async () => {
    const demo = startDemo("--backend", "userspace");
    const code = await demo.end();
    expect(demo.out()).toMatch(/\n✓ [\d,]+ requests in [\d.]+ s, 0 failed; 8 connections kept open, 0 broken\.\n$/);
    expect(code).toBe(0);
  });

  test("keeps nothing, and says so before it plays", { timeout: 180_000 }, async () => {
    const demo = startDemo("--backend", "userspace", "--keep");
    const code = await demo.end();
    expect(demo.out()).toMatch(/^turnout: \[invalid_object\] --keep keeps a cluster in namespaces, and on loopback there is none: /);
    expect(code).toBe(2);
  });

  test("is what is played where namespaces can't be made, whoever's fault that is", () => {
    expect(hasNoNamespaces(new ProxyError("permission_denied", "network namespaces need root"))).toBe(true);
    expect(hasNoNamespaces(new ProxyError("host_unsupported", "this host can't be probed"))).toBe(true);
    expect(hasNoNamespaces(new ProxyError("tool_failed", "not everything went well"))).toBe(false);
    expect(hasNoNamespaces(new Error("a defect"))).toBe(false);
  });
});
