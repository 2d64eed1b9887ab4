import type { Plain } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { winkernelModule } from "./module.ts";

const DEFAULTS = {
  networkName: "",
  sourceVip: "",
  enableDSR: true,
  rootHnsEndpointName: "cbr0",
  forwardHealthCheckVip: false,
  healthCheckPort: 10_256,
  preserveDestination: [],
};

describe("options", () => {
  it("have defaults, also where kube-proxy's configuration leaves them to the proxy", () => {
    expect(winkernelModule.parseOptions({})).toEqual(DEFAULTS);
    const asKubeProxyWrites = { networkName: "", sourceVip: "", rootHnsEndpointName: "", forwardHealthCheckVip: false };
    expect(winkernelModule.parseOptions(asKubeProxyWrites)).toEqual(DEFAULTS);
  });

  it.each<[Readonly<Record<string, Plain>>, object]>([
    [{ networkName: "cbr0" }, { networkName: "cbr0" }],
    [{ sourceVip: "010.1.1.2" }, { sourceVip: "10.1.1.2" }],
    [{ enableDSR: false }, { enableDSR: false }],
    [{ rootHnsEndpointName: "root" }, { rootHnsEndpointName: "root" }],
    [{ forwardHealthCheckVip: true }, { forwardHealthCheckVip: true }],
    [{ "health-check-port": 10_300 }, { healthCheckPort: 10_300 }],
    [{ "preserve-destination": ["shop/cart", "shop/web"] }, { preserveDestination: ["shop/cart", "shop/web"] }],
  ])("%j", (raw, expected) => {
    expect(winkernelModule.parseOptions(raw)).toEqual({ ...DEFAULTS, ...expected });
  });

  it.each<[Readonly<Record<string, Plain>>, string]>([
    [{ network: "cbr0" }, "unknown winkernel option"],
    [{ networkName: 1 }, "networkName"],
    [{ sourceVip: "here" }, "sourceVip"],
    [{ sourceVip: "fd00::1" }, "sourceVip"],
    [{ enableDSR: "yes" }, "enableDSR"],
    [{ "health-check-port": 0 }, "health-check-port"],
    [{ "preserve-destination": ["cart"] }, "preserve-destination"],
  ])("refuses %j", (raw, named) => {
    expect(() => winkernelModule.parseOptions(raw)).toThrow(named);
  });
});
