import { loadConfig, optionsForBackend, type ProxyStatus } from "@turnout/client/daemon";
import type { Plain } from "@turnout/core";
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
  ruleSettings: {
    backendOptions: { counters: true, cgroup: "/sys/fs/cgroup/a" },
    serviceEntriesMax: 60,
    allowedExternalIPs: ["198.51.100.0/24"],
  },
} as unknown as ProxyStatus;

type Flags = Readonly<Record<string, string>>;
type Options = Readonly<Record<string, Plain>>;

const parseOptions = ({ counters = false, cgroup = "/sys/fs/cgroup" }: Options): unknown => ({ counters, cgroup });
const moduleOf = (name: string) => ({ name, countingOptions: { counters: true }, parseOptions });

function agreed(flags: Flags, backend = "nft", options: Flags = {}, proxy = PROXY): AgreedFlags {
  const loaded = loadConfig({ flags, file: undefined, hostname: "vm", backendOptions: Object.entries(options) });
  return withProxyFlags({ loaded, found: { options: { found: "here" } }, module: moduleOf(backend) }, proxy);
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

describe("settings of rules", () => {
  it("are the proxy's where nobody said otherwise, before those that were found here", () => {
    const { config, causes } = agreed({ "service-metrics": "7" }, "nft", { cgroup: "/sys/fs/cgroup/a" });
    expect(causes).toEqual([]);
    expect(config).toMatchObject({
      backendOptions: { found: "here", counters: true, cgroup: "/sys/fs/cgroup/a" },
      serviceEntriesMax: 60,
      allowedAddresses: { externalIPs: [{ text: "198.51.100.0/24" }], loadBalancerIPs: undefined },
    });
  });

  it("are the proxy's beside one that was given alone", () => {
    const { config } = agreed({}, "nft", { cgroup: "/sys/fs/cgroup/a" });
    expect(config.backendOptions).toEqual({ found: "here", counters: true, cgroup: "/sys/fs/cgroup/a" });
  });

  it("are the command's own where an older proxy does not tell, or another backend has them", () => {
    const { ruleSettings: _, ...older } = PROXY;
    expect(agreed({ "service-metrics": "7" }, "nft", {}, older)).toMatchObject({ config: { serviceMetricsMax: 7 }, causes: [] });
    const { config, causes } = agreed({}, "iptables");
    expect(config.backendOptions).toEqual({ found: "here" });
    expect(causes[0]?.says).toContain("(backend nft, not iptables)");
    expect(optionsForBackend(moduleOf("nft"), agreed({ "service-metrics": "7" }, "nft", {}, older).config)).toMatchObject({
      counters: true,
    });
  });

  it.each<readonly [name: string, flags: Flags, options: Flags, says: string]>([
    ["an option", {}, { cgroup: "/b" }, "option cgroup of the backend: /sys/fs/cgroup/a, not /b"],
    ["how large a Service may be", { "max-service-entries": "9" }, {}, "--max-service-entries: 60, not 9"],
    ["addresses", { "allowed-external-ip-cidrs": "none" }, {}, "--allowed-external-ip-cidrs: 198.51.100.0/24, not none"],
  ])("are named where the command was told otherwise: %s", (_name, flags, options, says) => {
    const { causes } = agreed(flags, "nft", options);
    expect(causes).toMatchObject([{ id: "other_flags", isSure: false }]);
    expect(causes[0]?.says).toContain(`(${says})`);
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
