import { jsonFromVm, nodeCommand } from "@turnout/house/vm";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";

const script = new URL("../test-support/own-addresses-child.ts", import.meta.url);

/** A neighbour that asks for an IPv6 address of another device isn't answered, whatever the parameters of ARP are. */
const STRICT = {
  "IPv4 asked for": "silence",
  "IPv4 sent to this host": "answered",
  "IPv6 asked for": "silence",
  "IPv6 sent to this host": "answered",
};

describe("a device of a real kernel, with addresses of ours for IPVS", needs("uml", "ip"), () => {
  let results: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    results = (await jsonFromVm({ command: nodeCommand(script), modules: ["ipv6", "dummy", "veth"] })) as typeof results;
  });

  it("gets what is sent to them, and nobody answers for them where ARP is strict", () => {
    expect(results["made"]).toEqual({
      addresses: ["10.96.0.1/32 scope host", "fd00:96::1/128 scope global nodad deprecated"],
      reached: { ...STRICT, "IPv4 asked for": "answered" },
    });
    expect(results["strict"]).toEqual(STRICT);
  });

  it("goes with the last address of either family", () => {
    expect(results["left"]).toBe("0");
  });

  it("may be a former kube-proxy's: addresses stay as they are, and what isn't wanted goes", () => {
    expect(results["kubeProxys"]).toEqual({
      addresses: ["10.96.0.1/32 scope global", "10.96.0.9/32 scope global", "fd00:96::1/128 scope global"],
      reached: STRICT,
    });
    expect(results["adopted"]).toEqual({
      listed: [["10.96.0.1", "10.96.0.9"], ["fd00:96::1"]],
      addresses: ["10.96.0.1/32 scope global", "10.96.0.2/32 scope host", "fd00:96::1/128 scope global nodad deprecated"],
      reached: STRICT,
      source: "src 10.3.0.1",
    });
  });

  it("takes thousands at once", () => {
    expect(results["many"]).toBe(5_002);
  });
});
