import { systemClock } from "@turnout/core/process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asksOf, ToyStateServer } from "../../test-support/toy-state-server.ts";
import { eventually, toyFull, ToyKernel, toyModule, toyNode, toyRow, toyWorld } from "../../test-support/toys.ts";
import { runBackendProgram } from "./backend-main.ts";

const SERVICE = "service 10.96.0.10:80";
const QUIET = ["--healthz-bind-address", "", "--metrics-bind-address="];
let stateServer: ToyStateServer;
let kernel: ToyKernel;
let stop: AbortController;
let out: string;
let err: string;

beforeEach(async () => {
  stateServer = await ToyStateServer.create();
  kernel = new ToyKernel();
  stop = new AbortController();
  [out, err] = ["", ""];
});

afterEach(async () => {
  stop.abort();
  await stateServer.remove();
});

function program(...args: readonly string[]): Promise<number> {
  return runBackendProgram("turnout-toy", toyModule(kernel), args, {
    version: "1.2.3",
    platform: "linux",
    createWorld: (log) => ({ ...toyWorld(), clock: systemClock(), log }),
    out: (text) => (out += text),
    err: (text) => (err += text),
    isTerminal: false,
    hostname: "host1",
    signal: stop.signal,
    nowMs: () => 0,
    readFile: async (path) => (await import("node:fs/promises")).readFile(path, "utf8"),
    writeFile,
  });
}

/** A node-state server that answers both families once, with one service in IPv4. */
async function serveOnce(): Promise<void> {
  await stateServer.listen();
  stateServer.onStream = (stream): void => {
    stream.welcome();
    const answer = async (): Promise<void> => {
      await eventually("both families are asked for", () => asksOf(stream).length === 2);
      stream.answer(toyFull([toyRow("cart")]), { isEligible: true, reason: "" });
      stream.answer(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    };
    void answer();
  };
}

describe("a backend's own program", () => {
  test("follows the node-state server with the settings of its flags until it is stopped, and leaves the rules", async () => {
    await serveOnce();
    const running = program(
      "--api",
      stateServer.target,
      "--node-name",
      "node7",
      "--masquerade-all",
      "--cluster_cidr=10.1.0.0/16",
      ...QUIET,
    );
    await eventually("the service is there", () => kernel.objects.IPv4.has(SERVICE));
    const hello = stateServer.streams[0]?.requests[0]?.request;
    expect(hello).toMatchObject({
      $case: "hello",
      value: {
        nodeName: "node7",
        version: "turnout-toy 1.2.3",
        settings: { masqueradeAll: true, detectLocal: { mode: { $case: "clusterCidr", value: { cidrs: ["10.1.0.0/16"] } } } },
      },
    });
    stop.abort();
    expect(await running).toBe(0);
    expect(kernel.objects.IPv4.has(SERVICE)).toBe(true);
    expect(err).toContain("stopped, rules stay in force");
  });

  test("says that a gate which limits addresses has no effect on rows of a node-state server", async () => {
    await serveOnce();
    const args = ["--api", stateServer.target, "--node-name", "node7", "--once", ...QUIET];
    expect(await program(...args)).toBe(0);
    expect(err).not.toContain("AllowServiceExternalIPs");
    expect(await program(...args, "--feature-gates", "AllowServiceExternalIPs=false")).toBe(0);
    expect(err).toContain("the feature gate AllowServiceExternalIPs=false has no effect here");
  });

  test("--once without a node-state server fails when its time is over", async () => {
    expect(await program("--api", stateServer.target, "--once", "--timeout=200ms", ...QUIET)).toBe(1);
    expect(err).toContain(`turnout-toy: [timed_out] nothing complete within 0.2 s: source api:${stateServer.target}`);
    expect(kernel.applies).toBe(0);
  });

  test("--once succeeds where the host recovers in time", async () => {
    await serveOnce();
    kernel.failures.push(...Array.from({ length: 9 }, () => new ProxyError("tool_failed", "toy refuses")));
    expect(await program("--api", stateServer.target, "--once", "--verbose=true", ...QUIET)).toBe(0);
    expect(kernel.objects.IPv4.has(SERVICE)).toBe(true);
  });

  test("--write-config-to writes the configuration with its defaults, and starts nothing", async () => {
    const file = join(stateServer.directory, "written.yaml");
    expect(await program("--write-config-to", file, "--cluster-cidr=10.0.0.0/8", "-v=4")).toBe(0);
    const text = await readFile(file, "utf8");
    expect(text).toMatch(/^apiVersion: kubeproxy.config.k8s.io\/v1alpha1\nkind: KubeProxyConfiguration\n/);
    expect(text).toMatch(/^clusterCIDR: 10.0.0.0\/8$/m);
    expect(text).toMatch(/^ {2}verbosity: 4$/m);
    expect(await program("--write-config-to", file, "--feature-gates=Nonesuch=true")).toBe(2);
  });

  test("--cleanup removes the backend's rules, and asks no server", async () => {
    kernel.objects.IPv4.set(SERVICE, { kind: "service", key: "10.96.0.10:80", value: [] });
    expect(await program("--cleanup")).toBe(0);
    expect([kernel.objects.IPv4.size, kernel.objects.IPv6.size]).toEqual([0, 0]);
  });

  test("helps, and says its version", async () => {
    expect([await program("--help"), await program("-V")]).toEqual([0, 0]);
    expect(out).toMatch(/^Usage: turnout-toy \[options\]\n/);
    expect(out).toContain("--nodeport-addresses");
    expect(out).toMatch(/\n1\.2\.3\n$/);
  });

  test.each([
    [["--bogus"], "unknown option '--bogus': see turnout-toy --help"],
    [["--api", "nowhere"], '[invalid_object] it is no address: "nowhere"'],
    [["--once=maybe"], '"maybe" is neither true nor false: --once'],
  ])("%j is bad usage", async (args, reason) => {
    expect(await program(...args)).toBe(2);
    expect(err).toMatch(/^(?:\{.*\n)*turnout-toy: .*\n$/);
    expect(err).toContain(reason);
  });
});
