import type { Plain } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { ipvsModule } from "./module.ts";

const DEFAULTS = {
  scheduler: "rr",
  schedulers: {},
  excludeCIDRs: [],
  drainSeconds: 900,
  noLocalEndpoints: "drop",
  strictARP: false,
  timeouts: { tcp: 0, tcpFin: 0, udp: 0 },
  variant: "auto",
};

describe("options", () => {
  it("have defaults, also where kube-proxy's configuration leaves them to the proxy", () => {
    expect(ipvsModule.parseOptions({})).toEqual(DEFAULTS);
    const asKubeProxyWrites = {
      scheduler: "",
      excludeCIDRs: [],
      strictARP: false,
      tcpTimeout: "0s",
      tcpFinTimeout: "0s",
      udpTimeout: "0s",
    };
    expect(ipvsModule.parseOptions(asKubeProxyWrites)).toEqual(DEFAULTS);
  });

  it.each<[Readonly<Record<string, Plain>>, object]>([
    [{ scheduler: "lc" }, { scheduler: "lc" }],
    [{ schedulers: { "shop/cart": "sh" } }, { schedulers: { "shop/cart": "sh" } }],
    [{ excludeCIDRs: ["10.0.0.1/8"] }, { excludeCIDRs: ["10.0.0.0/8"] }],
    [{ excludeCIDRs: ["10.0.0.0/8", "fd00::/8"] }, { excludeCIDRs: ["10.0.0.0/8", "fd00::/8"] }],
    [{ "drain-seconds": 0 }, { drainSeconds: 0 }],
    [{ "no-local-endpoints": "cluster" }, { noLocalEndpoints: "cluster" }],
    [{ strictARP: true }, { strictARP: true }],
    [{ tcpTimeout: "1h2m3s", tcpFinTimeout: 5, udpTimeout: "30s" }, { timeouts: { tcp: 3_723, tcpFin: 5, udp: 30 } }],
    [{ tcpTimeout: "1m1.5s", udpTimeout: "500ms" }, { timeouts: { tcp: 61, tcpFin: 0, udp: 0 } }],
    [{ variant: "legacy" }, { variant: "legacy" }],
  ])("%j", (given, expected) => {
    expect(ipvsModule.parseOptions(given)).toEqual({ ...DEFAULTS, ...expected });
  });

  it.each<[Readonly<Record<string, Plain>>, string]>([
    [{ shceduler: "rr" }, 'unknown ipvs option "shceduler"'],
    [{ scheduler: "Round Robin" }, "scheduler must be the name of a scheduler"],
    [{ schedulers: { cart: "lc" } }, 'schedulers: "cart" is no Service'],
    [{ schedulers: { "shop/cart": 1 } }, "schedulers: shop/cart must be the name of a scheduler"],
    [{ schedulers: { "shop/cart": "" } }, "schedulers: shop/cart has no scheduler"],
    [{ schedulers: 7 }, "schedulers must be an object"],
    [{ excludeCIDRs: ["10.0.0.0/33"] }, 'excludeCIDRs must be a list, each of it a CIDR, e.g. 192.0.2.0/24: ["10.0.0.0/33"]'],
    [{ excludeCIDRs: 7 }, "excludeCIDRs must be a list"],
    [{ "drain-seconds": -1 }, "drain-seconds must be a duration"],
    [{ tcpTimeout: "15 minutes" }, "tcpTimeout must be a duration"],
    [{ "no-local-endpoints": "reject" }, "no-local-endpoints must be drop or cluster"],
    [{ strictARP: "yes" }, "strictARP must be true or false"],
    [{ variant: "nftables" }, "variant must be auto, legacy or nft"],
  ])("%j is refused by name", (given, message) => {
    expect(() => ipvsModule.parseOptions(given)).toThrow(`[invalid_object] ${message}`);
  });
});
