import { describe, expect, it } from "vitest";
import { goDurationMs, kubeProxyConfig, kubeProxySync } from "./process.ts";

describe("a kube-proxy's log", () => {
  const line = (fields: Readonly<Record<string, unknown>>): string => JSON.stringify({ ts: 1, caller: "proxier.go:1", ...fields });

  it("tells a sync that ended well, its family and how long it took", () => {
    const text = line({ msg: "SyncProxyRules complete", ipFamily: "IPv6", elapsed: "1.5s" });
    expect(kubeProxySync(text, 7)).toEqual({ family: "IPv6", elapsedMs: 1500, atMs: 7 });
  });

  it("tells it in the words of ipvs mode, too", () => {
    expect(kubeProxySync(line({ msg: "syncProxyRules complete", ipFamily: "IPv4", elapsed: "2ms" }), 7)).toMatchObject({ family: "IPv4" });
    expect(JSON.parse(kubeProxyConfig({ mode: "ipvs", nodeName: "n", kubeconfig: "/k" }))).toMatchObject({ logging: { verbosity: 4 } });
  });

  it("is not fooled by other lines", () => {
    expect(kubeProxySync(line({ msg: "Syncing iptables rules", ipFamily: "IPv4" }), 0)).toBeUndefined();
    expect(kubeProxySync("panic: SyncProxyRules complete", 0)).toBeUndefined();
  });

  it("does not count a sync that failed", () => {
    expect(() => kubeProxySync(line({ msg: "Sync failed", ipFamily: "IPv4" }), 0)).toThrow("failed to sync IPv4");
  });

  it.each([
    ["1m2.5s", 62_500],
    ["12.25ms", 12.25],
    ["750µs", 0.75],
    ["1h0m0s", 3_600_000],
  ])("reads Go's %s as %d ms", (text, ms) => expect(goDurationMs(text)).toBeCloseTo(ms));

  it("refuses what is no duration", () => expect(() => goDurationMs("soon")).toThrow(RangeError));
});

it("a configuration leaves the machine's connection table alone, unless a case says otherwise", () => {
  const options = { mode: "iptables", nodeName: "node1", kubeconfig: "/k" } as const;
  expect(JSON.parse(kubeProxyConfig(options))).toMatchObject({ mode: "iptables", conntrack: { maxPerCore: 0, min: 0 } });
  expect(JSON.parse(kubeProxyConfig({ ...options, fields: { mode: "nftables" } }))).toMatchObject({ mode: "nftables" });
});
