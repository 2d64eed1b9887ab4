import { once } from "node:events";
import { ProxyError, type BackendModule } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVICE, toyConfig, ToyProxy } from "../../test-support/toy-proxy.ts";
import { flushPromises, toyFull, toyModule, toyNode, toyRow, withBackends } from "../../test-support/toys.ts";

let proxy: ToyProxy;

beforeEach(() => {
  proxy = new ToyProxy();
});

afterEach(() => proxy.end());

describe("families and hosts", () => {
  test("a family that is missing is reported, the other goes on", async () => {
    proxy.kernel.missing.add("IPv6");
    await proxy.started();
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
    expect(proxy.world.log.lines.filter((line) => line.includes("family=IPv6"))).toEqual([
      "warn this family is left out: its Services have no rules on this node family=IPv6 error=[host_unsupported] no IPv6 here",
    ]);
    const lines = (await proxy.metrics.text()).split("\n").filter((line) => line.startsWith("turnout_family_left_out"));
    expect(lines).toEqual(['turnout_family_left_out{ip_family="IPv4"} 0', 'turnout_family_left_out{ip_family="IPv6"} 1']);
  });

  test.each([
    ["of the host's addresses", undefined, ["192.0.2.1", "127.0.0.1"], "IPv4"],
    ["of a host without IPv4", undefined, ["127.0.0.1", "169.254.1.1"], "IPv6"],
    ["that --bind-address says", "2001:db8::1", ["192.0.2.1"], "IPv6"],
  ] as const)("the primary family, %s, can't be left out", async (_name, bindAddress, addresses, primary) => {
    const hostAddresses = (family: string): readonly string[] => (family === "IPv4" ? addresses : ["2001:db8::1"]);
    const config = toyConfig({ bindAddress });
    proxy.kernel.missing.add(primary);
    await expect(proxy.start({ config, hostAddresses })).rejects.toThrow(
      `[host_unsupported] this host can't do the primary family of the node: no ${primary} here: repair that, or say by --bind-address`,
    );
    proxy.kernel.missing.clear();
    proxy.kernel.missing.add(primary === "IPv4" ? "IPv6" : "IPv4");
    await proxy.started({ config, hostAddresses });
    expect(proxy.world.log.lines.filter((line) => line.startsWith("warn this family is left out"))).toHaveLength(1);
  });

  test("both missing is an error", async () => {
    proxy.kernel.missing.add("IPv4").add("IPv6");
    await expect(proxy.start()).rejects.toThrow("no IPv4 here");
  });

  test("a backend without a family says why", async () => {
    const module = toyModule(proxy.kernel);
    void proxy.start({}, { ...module, capabilities: { ...module.capabilities, IPv6: "not written" } });
    await flushPromises();
    expect(proxy.world.log.lines.some((line) => line.includes("no IPv6: not written"))).toBe(true);
  });

  test("a host that can't run the backend is an error, but not in a dry run", async () => {
    proxy.kernel.problems = [new ProxyError("tool_missing", "no toy")];
    await expect(proxy.start()).rejects.toThrow("no toy");
    proxy.pushBoth();
    await proxy.start({ once: true, dryRun: () => undefined });
    expect(proxy.kernel.applies).toBe(0);
  });
});

describe("stopped while it looks at the host", () => {
  function slow(): BackendModule {
    const module = toyModule(proxy.kernel);
    return {
      ...module,
      probe: async (_options, _world, signal) => {
        await once(signal, "abort");
        throw new ProxyError("canceled", "the command was given up", { object: "toy --version" });
      },
    };
  }

  test("a daemon ends well", async () => {
    const done = proxy.start({}, slow());
    await flushPromises();
    proxy.stop.abort();
    await expect(done).resolves.toBeUndefined();
  });

  test("a one-time sync is not done", async () => {
    const done = proxy.start({ once: true }, slow());
    await flushPromises();
    proxy.stop.abort();
    await expect(done).rejects.toMatchObject({ code: "canceled" });
  });
});

describe("one time", () => {
  test("syncs, ends, leaves the rules", async () => {
    proxy.pushBoth();
    await proxy.start({ once: true });
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
    expect(proxy.kernel.closed).toEqual(["IPv4", "IPv6"]);
  });

  test("fails with the reason", async () => {
    proxy.kernel.failures.push(...Array.from({ length: 20 }, () => new ProxyError("permission_denied", "toy says no")));
    proxy.pushBoth();
    await expect(proxy.start({ once: true })).rejects.toThrow("toy says no");
    expect(proxy.kernel.closed).toEqual(["IPv4", "IPv6"]);
  });

  test("being stopped before it is done is a failure", async () => {
    const done = proxy.start({ once: true });
    await flushPromises();
    proxy.stop.abort();
    await expect(done).rejects.toMatchObject({ code: "canceled" });
  });

  test("a dry run tells the plan and touches nothing", async () => {
    const plans: string[] = [];
    proxy.pushBoth();
    await proxy.start({ once: true, dryRun: (text) => plans.push(text) });
    expect(plans).toContain(`table IPv4\n${SERVICE}`);
    expect([proxy.kernel.applies, proxy.kernel.objects.IPv4.size]).toEqual([0, 0]);
  });

  test("a dry run without rights or tools plans for an empty host and says so", async () => {
    const module = toyModule(proxy.kernel);
    const blind = withBackends(module, () => ({
      observe: () => Promise.reject(new ProxyError("permission_denied", "no right to look")),
    }));
    const plans: string[] = [];
    proxy.pushBoth();
    await proxy.start({ once: true, dryRun: (text) => plans.push(text) }, blind);
    expect(plans).toContain(`table IPv4\n${SERVICE}`);
    expect(proxy.world.log.lines.filter((line) => line.includes("planning for an empty one"))).toHaveLength(2);
    expect(proxy.world.log.lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });

  test("a dry run that stays on takes no ports and repairs nothing", async () => {
    const plans: string[] = [];
    const done = proxy.start({
      config: toyConfig({
        healthzBindAddress: { ip: "192.0.2.1", port: 10_256 },
        metricsBindAddress: { ip: "192.0.2.1", port: 10_249 },
        bindAddressHardFail: true,
      }),
      dryRun: (text) => plans.push(text),
    });
    proxy.feeds.IPv4.push(
      toyFull([toyRow("web", { healthCheck: { port: 30_100, readyLocal: 1 } })], toyNode({ addresses: ["192.0.2.1"] })),
    );
    await flushPromises();
    const before = plans.length;
    expect(before).toBeGreaterThan(0);
    proxy.kernel.emit({ kind: "drift", what: "the real proxy" });
    await proxy.world.clock.advance(100);
    expect(plans).toHaveLength(before);
    expect(proxy.world.log.lines.filter((line) => /listen|port|changed/.test(line))).toEqual([]);
    proxy.stop.abort();
    await done;
  });

  test("a backend that lives in the process can't", async () => {
    await expect(proxy.start({ once: true }, toyModule(proxy.kernel, { residence: "process" }))).rejects.toMatchObject({
      code: "invalid_object",
    });
  });
});

describe("reasons to start anew", () => {
  test("the configuration file changed", async () => {
    let text = "a";
    const done = proxy.start({ config: toyConfig({ configFile: { path: "c.yaml", text: "a" } }), readFile: () => Promise.resolve(text) });
    await proxy.world.clock.advance(2_000);
    text = "b";
    await proxy.world.clock.advance(2_000);
    await expect(done).rejects.toThrow("the configuration file changed: c.yaml");
  });

  test("an address can't be bound with bindAddressHardFail", async () => {
    const taken = { ip: "192.0.2.1", port: 10_256 };
    await expect(proxy.start({ config: toyConfig({ healthzBindAddress: taken, bindAddressHardFail: true }) })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("a defect ends the process instead of being swallowed", async () => {
    const module = toyModule(proxy.kernel);
    const broken = withBackends(module, () => ({
      watch: () => {
        throw new TypeError("a defect");
      },
    }));
    const done = proxy.start({}, broken);
    proxy.pushBoth();
    await expect(done).rejects.toThrow(/a defect/);
  });
});
