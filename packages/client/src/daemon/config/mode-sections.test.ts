import { describe, expect, test } from "vitest";
import type { RawFlags } from "./config-flags.ts";
import { loadConfig } from "./loaded-config.ts";
import { iptablesNodePortAddresses } from "./mode-sections.ts";
import { runConfig, type BackendFound, type ConfiguredBackend, type RunConfig } from "./run-config.ts";

const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
const NFT: ConfiguredBackend = { name: "nft", proxyMode: "nftables", nodePortAddressesDefault: ["primary"] };
const IPTABLES: ConfiguredBackend = { name: "iptables" };
const UNNAMED: BackendFound = { isUnnamed: true };

function configure(backend: ConfiguredBackend, found: BackendFound, body?: string, flags: RawFlags = {}): RunConfig {
  const file = body === undefined ? undefined : { path: "config.yaml", text: HEAD + body };
  return runConfig(loadConfig({ flags, file, hostname: "node-a" }), backend, found);
}

const SECTIONS = `iptables: {masqueradeAll: true, masqueradeBit: 17, syncPeriod: 45s, minSyncPeriod: 1s, localhostNodePorts: false}
nftables: {masqueradeBit: 9, syncPeriod: 50s}
`;

describe('mode "" where nothing names a backend', () => {
  test.each([NFT, { ...NFT, name: "ebpf", proxyMode: "ebpf" }])("has iptables' section: $name", (backend) => {
    const config = configure(backend, UNNAMED, SECTIONS);
    expect(config).toMatchObject({
      settings: { masqueradeAll: true, masqueradeBit: 17, nodePortAddresses: ["0.0.0.0/0", "::/0"], localhostNodePorts: false },
      syncPeriodMs: 45_000,
      minSyncPeriodMs: 1_000,
      backendOptions: {},
    });
    expect(config.warnings).toEqual([
      `settings for another mode have no effect with backend ${backend.name}: nftables.masqueradeBit (9), nftables.syncPeriod ("50s")`,
    ]);
  });

  test("has iptables' defaults: node ports on every address, 127.0.0.1 by name among them", () => {
    for (const body of [undefined, "mode: ''\nclusterCIDR: 10.244.0.0/16\n"])
      expect(configure(NFT, UNNAMED, body)).toMatchObject({
        settings: { nodePortAddresses: ["0.0.0.0/0", "::/0", "127.0.0.0/8"], masqueradeBit: 14 },
        warnings: [],
      });
    expect(configure(NFT, UNNAMED).configz["kubeproxy.config.k8s.io"]).toMatchObject({
      nodePortAddresses: ["0.0.0.0/0", "::/0", "127.0.0.0/8"],
    });
  });

  test("changes nothing for iptables itself, whose option and default these are", () => {
    expect(configure(IPTABLES, UNNAMED, SECTIONS)).toMatchObject({
      settings: { masqueradeAll: true, nodePortAddresses: undefined },
      backendOptions: { localhostNodePorts: false },
    });
  });

  test("checks iptables' section, and no other", () => {
    expect(() => configure(NFT, UNNAMED, "iptables: {syncPeriod: -1s}\n")).toThrow(
      "-1s must be greater than 0: config.yaml: iptables.syncPeriod",
    );
    expect(() => configure(NFT, UNNAMED, "nftables: {syncPeriod: -1s}\n")).not.toThrow();
    expect(() => configure(NFT, UNNAMED, "iptables: {syncPeriod: 1s, minSyncPeriod: 2s}\n")).toThrow("iptables.minSyncPeriod");
  });

  test("takes flags of mode iptables", () => {
    const flags = {
      "masquerade-all": true,
      "iptables-masquerade-bit": "3",
      "iptables-sync-period": "5s",
      "iptables-localhost-nodeports": "false",
    } as const;
    const config = configure(NFT, UNNAMED, undefined, flags);
    expect(config).toMatchObject({
      settings: { masqueradeAll: true, masqueradeBit: 3, localhostNodePorts: false },
      syncPeriodMs: 5_000,
      warnings: [],
    });
  });
});

describe("a backend that is named", () => {
  test("has its own section and default, and each value of other sections is named", () => {
    const config = configure(
      NFT,
      {},
      `mode: nftables\nipvs: {scheduler: lc, strictARP: true, tcpTimeout: 0s, excludeCIDRs: []}\n${SECTIONS}`,
    );
    expect(config).toMatchObject({
      settings: { masqueradeAll: false, masqueradeBit: 9, nodePortAddresses: undefined },
      syncPeriodMs: 50_000,
    });
    expect(config.warnings).toEqual([
      'settings for another mode have no effect with backend nft: iptables.masqueradeBit (17), iptables.masqueradeAll (true), iptables.localhostNodePorts (false), iptables.syncPeriod ("45s"), iptables.minSyncPeriod ("1s"), ipvs.scheduler ("lc"), ipvs.strictARP (true)',
    ]);
  });

  test("that is not the one of the mode is named with the sections that count", () => {
    expect(configure(IPTABLES, {}, "mode: nftables\nnftables: {masqueradeAll: true}\n").warnings).toEqual([
      "the configuration is for mode nftables, but the backend is iptables: masquerade settings are those of section iptables, sync periods those of iptables",
      "settings for another mode have no effect with backend iptables: nftables.masqueradeAll (true)",
    ]);
  });

  test('with a file of mode "" answers node ports elsewhere, which is said', () => {
    const warning = [
      'with mode "" kube-proxy answers node ports on every address of the node, and backend nft on primary: set nodePortAddresses, or start turnout without --backend',
    ];
    expect(configure(NFT, {}, "mode: ''\n").warnings).toEqual(warning);
    expect(configure(NFT, {}, "mode: ''\nnodePortAddresses: [10.0.0.0/8]\n").warnings).toEqual([]);
    expect(configure(NFT, {}).warnings).toEqual([]);
    expect(configure(IPTABLES, {}, "mode: ''\n").warnings).toEqual([]);
  });

  test("flags that count in two sections are not named, and others are, by flag", () => {
    const flags = { "masquerade-all": true, "iptables-sync-period": "5s", "iptables-masquerade-bit": "3", "ipvs-scheduler": "lc" } as const;
    expect(configure(NFT, {}, undefined, flags).warnings).toEqual([
      'settings for another mode have no effect with backend nft: --iptables-masquerade-bit (3), --ipvs-scheduler ("lc")',
    ]);
    expect(configure({ name: "ipvs" }, {}, undefined, flags).warnings).toEqual([
      'settings for another mode have no effect with backend ipvs: --iptables-sync-period ("5s")',
    ]);
  });

  test("kubeadm's zeros ask for nothing", () => {
    const zeros = "iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}\n";
    const body = `mode: nftables\n${zeros}ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, tcpTimeout: 0s}\nwinkernel: {enableDSR: false, networkName: ""}\n`;
    expect(configure(NFT, {}, body).warnings).toEqual([]);
    expect(configure(NFT, UNNAMED, body.replace("mode: nftables\n", "")).warnings).toEqual([]);
  });
});

test.each<readonly [given: readonly string[], hasLocalhost: boolean, expected: readonly string[]]>([
  [[], true, ["0.0.0.0/0", "::/0", "127.0.0.0/8"]],
  [[], false, ["0.0.0.0/0", "::/0"]],
  [["0.0.0.0/0"], true, ["0.0.0.0/0", "127.0.0.0/8"]],
  [["all"], true, ["all", "127.0.0.0/8"]],
  [["all"], false, ["all"]],
  [["192.0.2.0/24"], true, ["192.0.2.0/24"]],
  [["primary"], true, ["primary"]],
  [["2001:db8::/64"], true, ["2001:db8::/64", "0.0.0.0/0", "127.0.0.0/8"]],
  [["192.0.2.0/24", "::/0"], true, ["192.0.2.0/24", "::/0"]],
])("node ports of mode iptables: %j, on localhost: %j", (given, hasLocalhost, expected) => {
  expect(iptablesNodePortAddresses(given, hasLocalhost)).toEqual(expected);
});
