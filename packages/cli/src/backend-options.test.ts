import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plain } from "@turnout/core";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { KNOWN_BACKENDS, loadBackend } from "./registry.ts";

/** How one option is given, and what the backend then works with. */
interface Row {
  /** Values of the flag, in its order. */
  readonly flags: readonly string[];
  /** What the configuration file has. */
  readonly file: Plain;
  /** The part of the backend's parsed options that it decides, which is not so by default. */
  readonly seen: object;
}

/** An option with one value. */
const one = (value: string | number | boolean, seen: object): Row => ({ flags: [String(value)], file: value, seen });
/** An option that is given twice, where the last value counts. */
const last = (first: string, value: string | number | boolean, seen: object): Row => ({ flags: [first, String(value)], file: value, seen });
/** A list that is given by commas and by repetition. */
const list = (flags: readonly string[], file: readonly string[], seen: object): Row => ({ flags, file, seen });

/** A row for each option of each backend. */
const ROWS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  nft: {
    "nft-path": one("/opt/1/nft", { nftPath: "/opt/1/nft" }),
    comments: one(false, { comments: false }),
    counters: last("false", true, { counters: true }),
    "count-bytes": one(true, { countBytes: true }),
  },
  iptables: {
    variant: last("legacy", "nft", { variant: "nft" }),
    "endpoint-comments": one(false, { endpointComments: false }),
    localhostNodePorts: one(false, { localhostNodePorts: false }),
  },
  ipvs: {
    scheduler: last("rr", "lc", { scheduler: "lc" }),
    schedulers: {
      flags: ["shop/cart=lc,shop/web=sh", "shop/cart=mh"],
      file: { "shop/cart": "mh", "shop/web": "sh" },
      seen: { schedulers: { "shop/cart": "mh", "shop/web": "sh" } },
    },
    excludeCIDRs: list(["192.0.2.0/24,fd00::/8", "198.51.100.0/24"], ["192.0.2.0/24", "fd00::/8", "198.51.100.0/24"], {
      excludeCIDRs: ["192.0.2.0/24", "fd00::/8", "198.51.100.0/24"],
    }),
    "drain-seconds": one(7, { drainSeconds: 7 }),
    "no-local-endpoints": one("cluster", { noLocalEndpoints: "cluster" }),
    strictARP: one(true, { strictARP: true }),
    tcpTimeout: one("15m", { timeouts: { tcp: 900 } }),
    tcpFinTimeout: one(20, { timeouts: { tcpFin: 20 } }),
    udpTimeout: one("30s", { timeouts: { udp: 30 } }),
    variant: one("legacy", { variant: "legacy" }),
  },
  ebpf: {
    "max-services": last("8", 9, { sizes: { services: 9 } }),
    "max-endpoints": one(10, { sizes: { endpoints: 10 } }),
    "max-ranges": one(11, { sizes: { ranges: 11 } }),
    "max-affinity": one(12, { sizes: { affinity: 12 } }),
    "max-sockets": one(13, { sizes: { sockets: 13 } }),
    "opt-out-services": list(["shop/cart,shop/web", "shop/dns"], ["shop/cart", "shop/web", "shop/dns"], {
      optOutServices: ["shop/cart", "shop/web", "shop/dns"],
    }),
    "opt-out-namespaces": list(["/run/netns/a,/run/netns/b", "/run/netns/c"], ["/run/netns/a", "/run/netns/b", "/run/netns/c"], {
      optOutNamespaces: ["/run/netns/a", "/run/netns/b", "/run/netns/c"],
    }),
    "host-sockets-only": one(true, { hostSocketsOnly: true }),
    cgroup: one("/sys/fs/cgroup/kubepods", { cgroup: "/sys/fs/cgroup/kubepods" }),
    devices: list(["eth*,bond0", "port1"], ["eth*", "bond0", "port1"], { devices: ["eth*", "bond0", "port1"] }),
    counters: one(true, { counters: true }),
    "verifier-log": one("/var/log/verifier", { verifierLog: "/var/log/verifier" }),
  },
  userspace: {
    "own-addresses": one(false, { ownAddresses: false }),
    map: list(
      ["shop/a=127.0.0.1:81,shop/b=127.0.0.1:82", "shop/c=127.0.0.1:83"],
      ["shop/a=127.0.0.1:81", "shop/b=127.0.0.1:82", "shop/c=127.0.0.1:83"],
      {
        map: [{ target: "shop/a" }, { target: "shop/b" }, { target: "shop/c" }],
      },
    ),
    "endpoint-map": list(
      ["10.1.1.5:80=127.0.0.1:91", "10.1.1.6:80=127.0.0.1:92"],
      ["10.1.1.5:80=127.0.0.1:91", "10.1.1.6:80=127.0.0.1:92"],
      {
        endpointMap: { "10.1.1.5:80": { port: 91 }, "10.1.1.6:80": { port: 92 } },
      },
    ),
    balance: one("round-robin", { balance: "round-robin" }),
    "proxy-protocol": one("v2", { proxyProtocol: "v2" }),
    "proxy-protocol-for": list(["shop/a,shop/b", "shop/c"], ["shop/a", "shop/b", "shop/c"], {
      proxyProtocolFor: ["shop/a", "shop/b", "shop/c"],
    }),
    "drain-timeout": one(1, { drainSeconds: 1 }),
    "dial-timeout": one(2.5, { dialSeconds: 2.5 }),
    "tcp-idle-timeout": one(3, { tcpIdleSeconds: 3 }),
    "udp-idle-timeout": one(4, { udpIdleSeconds: 4 }),
    "max-connections": one(5, { maxConnections: 5 }),
    "max-connections-per-listener": one(6, { maxConnectionsPerListener: 6 }),
    "max-udp-sessions": one(7, { maxUdpSessions: 7 }),
  },
  winkernel: {
    networkName: one("net", { networkName: "net" }),
    sourceVip: one("10.1.1.2", { sourceVip: "10.1.1.2" }),
    enableDSR: one(false, { enableDSR: false }),
    rootHnsEndpointName: one("root", { rootHnsEndpointName: "root" }),
    forwardHealthCheckVip: one(true, { forwardHealthCheckVip: true }),
    "health-check-port": one(10_300, { healthCheckPort: 10_300 }),
    "preserve-destination": list(["shop/a,shop/b", "shop/c"], ["shop/a", "shop/b", "shop/c"], {
      preserveDestination: ["shop/a", "shop/b", "shop/c"],
    }),
  },
};

const PACKAGES = fileURLToPath(new URL("../../", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "turnout-options-"));
const path = (name: string): string => join(directory, name);

afterAll(() => rmSync(directory, { recursive: true }));

/** The backend of a name, which writes down the options that its probe is given, and then ends the start. */
function watched(name: string): string {
  const real = JSON.stringify(join(PACKAGES, `backend-${name}/dist/index.js`));
  const core = JSON.stringify(join(PACKAGES, "core/dist/index.js"));
  writeFileSync(
    path(`${name}.mjs`),
    `import real from ${real};
import { ProxyError } from ${core};
import { writeFileSync } from "node:fs";
const plain = (_key, value) => value instanceof Map ? Object.fromEntries(value) : value instanceof Set ? [...value] : value;
const probe = async (options) => {
  writeFileSync(${JSON.stringify(path(`${name}.json`))}, JSON.stringify(options, plain));
  throw new ProxyError("host_unsupported", "seen");
};
export default { ...real, name: "watched", createWorld: undefined, probe };
`,
  );
  return path(`${name}.mjs`);
}

/** Start `turnout run` with a watched backend; what its probe was given, and what was said. */
async function started(name: string, ...args: readonly string[]): Promise<{ readonly options: unknown; readonly said: string }> {
  const command = ["run", "--backend", watched(name), "--source", `file:${path("objects.yaml")}`, "--node-name", "node1", ...args];
  const said = await new Promise<string>((resolve) => {
    execFile(join(PACKAGES, "cli/bin/turnout"), command, { cwd: directory }, (_error, out, err) => resolve(`${out}${err}`));
  });
  expect(said).toContain("[host_unsupported] seen");
  return { options: JSON.parse(readFileSync(path(`${name}.json`), "utf8")) as unknown, said };
}

describe.each(KNOWN_BACKENDS.map(({ name }) => name))("%s", (name) => {
  const rows = Object.entries(ROWS[name] ?? {});
  const flags = rows.flatMap(([option, row]) => row.flags.map((value) => `--backend-option=${option}=${value}`));
  const configuration = (rest: object): string[] => {
    const head = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
    writeFileSync(path("config.yaml"), stringify({ ...head, ...rest }));
    return ["--config", path("config.yaml")];
  };
  writeFileSync(path("objects.yaml"), "[]");

  test("every declared option has a row", async () => {
    const { options = {} } = await loadBackend(name, "");
    expect(rows.map(([option]) => option)).toEqual(Object.keys(options));
  });

  test("no option is so by default", async () => {
    const { options } = await started(name);
    for (const [, { seen }] of rows) expect(options).not.toMatchObject(seen);
  });

  test("every option is in force that a flag gives", async () => {
    const { options } = await started(name, ...flags);
    for (const [, { seen }] of rows) expect(options).toMatchObject(seen);
  });

  test("every option is in force that the configuration file gives", async () => {
    const backendOptions = Object.fromEntries(rows.map(([option, { file }]) => [option, file]));
    const { options, said } = await started(name, ...configuration({ turnout: { backendOptions } }));
    for (const [, { seen }] of rows) expect(options).toMatchObject(seen);
    expect(said).not.toContain("unknown field");
  });
});
