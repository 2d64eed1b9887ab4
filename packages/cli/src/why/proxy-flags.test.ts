import { loadConfig, runConfig, type ProxyStatus } from "@turnout/client/daemon";
import { describe, expect, it } from "vitest";
import { demandSource, withProxyFlags, type AgreedFlags } from "./proxy-flags.ts";

const PROXY = {
  kind: "proxy",
  backend: "nft",
  node: "n1",
  settings: {
    masqueradeAll: true,
    masqueradeBit: 7,
    detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16"] },
    nodePortAddresses: ["primary"],
  },
} as unknown as ProxyStatus;

function agreed(flags: Readonly<Record<string, string>>, backend = "nft"): AgreedFlags {
  const loaded = loadConfig({ flags, file: undefined, hostname: "vm", backendOptions: {} });
  return withProxyFlags({ loaded, config: runConfig(loaded, { name: backend }), backend }, PROXY);
}

describe("flags of the proxy that runs", () => {
  it("count where nobody said otherwise", () => {
    const { config, causes } = agreed({});
    expect([config.nodeName, config.settings, causes]).toEqual(["n1", PROXY.settings, []]);
  });

  it("count beside those that were given and are the same", () => {
    const { config, causes } = agreed({ "cluster-cidr": "10.1.0.0/16", "node-name": "n1" });
    expect([config.nodeName, config.settings, causes]).toEqual(["n1", PROXY.settings, []]);
  });

  it.each<readonly [name: string, flags: Readonly<Record<string, string>>, backend: string, says: string]>([
    ["pods", { "cluster-cidr": "10.2.0.0/16" }, "nft", "--detect-local-mode: ClusterCIDR 10.1.0.0/16, not ClusterCIDR 10.2.0.0/16"],
    ["the node", { "node-name": "n2" }, "nft", "--node-name n1, not n2"],
    ["the backend", {}, "iptables", "backend nft, not iptables"],
  ])("are named where the command was told otherwise: %s", (_name, flags, backend, says) => {
    const { causes } = agreed(flags, backend);
    expect(causes).toMatchObject([{ id: "other_flags", isSure: false }]);
    expect(causes[0]?.says).toContain(says);
  });
});

describe("a source that nobody named", () => {
  it("is asked for where the proxy reads another one", () => {
    expect(() => demandSource("kube", "file:shop.yaml")).toThrow(
      /without --source Services are read from kube, and the proxy here reads file:shop.yaml/,
    );
    expect(() => demandSource("kube", "kube")).not.toThrow();
    expect(() => demandSource("kube", undefined)).not.toThrow();
  });
});
