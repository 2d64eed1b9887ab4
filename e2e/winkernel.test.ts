import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { rawNode, rawService, rawSlice } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { PACKED_FIRST_HOUR, PACKED_NODE, packForWindows, WineMachine } from "@turnout/house/wine";
import type { RunningProgram } from "@turnout/house/wine";
import { createApiServer, createAuthority } from "@turnout/lab";
import type { ApiServer } from "@turnout/lab";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";

const NETWORK = "0b9f2a1c-6d53-4a0e-9a57-2f5f0c1d7e11";
const POD = "11223344-5566-4788-99aa-bbccddeeff00";
const TOKEN = "of the pod";
const MANIFESTS = new URL("../deploy/windows/turnout.yaml", import.meta.url);
const STUB = new URL("../packages/backend-winkernel/src/test-support/wine/", import.meta.url);

/** What of the manifests is read here. */
interface Manifest {
  readonly kind: string;
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly { readonly command: readonly string[]; readonly args: readonly string[] }[] };
    };
  };
}

function manifest(kind: string): Manifest {
  const all = parseAllDocuments(readFileSync(MANIFESTS, "utf8")).map((one) => one.toJS() as Manifest);
  const found = all.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`${MANIFESTS.pathname} has no ${kind}`);
  return found;
}

/** A port of loopback that was free just now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A Windows node: HNS with the CNI's network and a pod of its own, and the files of a HostProcess pod as containerd 1.6 has them. */
class WindowsNode {
  readonly machine: WineMachine;
  readonly #pod: string;
  readonly #hns: string;
  readonly #ports: { readonly health: number; readonly metrics: number };
  #seen = 0;

  private constructor(machine: WineMachine, ports: { readonly health: number; readonly metrics: number }) {
    this.machine = machine;
    this.#ports = ports;
    this.#pod = machine.makeFolder("pod");
    this.#hns = machine.makeFolder("hns");
  }

  static async boot(ca: string): Promise<WindowsNode> {
    const machine = await WineMachine.boot();
    const node = new WindowsNode(machine, { health: await freePort(), metrics: await freePort() });
    await machine.install({ source: new URL("computenetwork.c", STUB), name: "computenetwork.dll", links: ["ole32", "uuid"] });
    await machine.install({ source: new URL("vmcompute.c", STUB), name: "vmcompute.dll", uses: ["computenetwork.dll"] });
    await packForWindows(join(node.#pod, "turnout"));
    const account = join(node.#pod, "var", "run", "secrets", "kubernetes.io", "serviceaccount");
    mkdirSync(account, { recursive: true });
    writeFileSync(join(account, "token"), TOKEN);
    writeFileSync(join(account, "ca.crt"), ca);
    const local = { HostComputeNetwork: NETWORK, IpConfigurations: [{ IpAddress: "10.1.1.1" }], MacAddress: "00-15-5D-AA-BB-CC" };
    const network = { Name: "cbr0", Type: "L2Bridge" };
    writeFileSync(join(node.#hns, "objects.txt"), `N ${NETWORK} ${JSON.stringify(network)}\nE ${POD} ${JSON.stringify(local)}\n`);
    mkdirSync(join(node.#pod, "etc", "turnout"), { recursive: true });
    node.configure("15m");
    return node;
  }

  /** Write the ConfigMap, with other ports, and a field that says nothing to Windows. */
  configure(configSyncPeriod: string): void {
    const text = manifest("ConfigMap").data["config.conf"];
    const { health, metrics } = this.#ports;
    const more = `healthzBindAddress: 127.0.0.1:${health}\nmetricsBindAddress: 127.0.0.1:${metrics}\nconfigSyncPeriod: ${configSyncPeriod}\n`;
    writeFileSync(join(this.#pod, "etc", "turnout", "config.conf"), text + more);
  }

  /** Start the agent as the DaemonSet does. */
  async start(api: ApiServer): Promise<RunningProgram> {
    const { hostname, port } = new URL(api.url);
    const [container] = manifest("DaemonSet").spec.template.spec.containers;
    const [node = "", command = "", ...words] = [...(container?.command ?? []), ...(container?.args ?? [])];
    return await this.machine.start({
      node: join(this.#pod, node),
      script: join(this.#pod, command),
      cwd: this.#pod,
      args: words.map((word) => word.replace("$(NODE_NAME)", "node1")),
      env: {
        TURNOUT_HNS_STUB: this.machine.pathOf(this.#hns),
        CONTAINER_SANDBOX_MOUNT_POINT: this.machine.pathOf(this.#pod),
        KUBERNETES_SERVICE_HOST: hostname,
        KUBERNETES_SERVICE_PORT: port,
      },
    });
  }

  /** Play the first hour; gives what it printed. */
  async firstHour(): Promise<string> {
    const { code, stdout, stderr } = await this.machine.run({
      node: join(this.#pod, "turnout", PACKED_NODE),
      script: join(this.#pod, "turnout", PACKED_FIRST_HOUR),
      args: ["cbr0", this.machine.pathOf(join(this.machine.folder, "recording.jsonl")), "50"],
      env: { TURNOUT_HNS_STUB: this.machine.pathOf(this.#hns) },
    });
    if (code !== 0) throw new Error(`${stdout}${stderr}`);
    return stdout;
  }

  /** What HNS has besides what the CNI made, a line each, without ids. */
  objects(): readonly string[] {
    const lines = readFileSync(join(this.#hns, "objects.txt"), "utf8").trim().split("\n");
    return lines.filter((line) => !line.includes(NETWORK) || line.includes('"Flags":1')).map(shortened);
  }

  /** The changes that HNS was asked for since the last time, in their order. */
  changes(): readonly string[] {
    const path = join(this.#hns, "journal.txt");
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    const fresh = lines.slice(this.#seen);
    this.#seen = lines.length;
    return fresh.flatMap((line) => /^Hcn((?:Create|Modify|Delete)\w+)/.exec(line)?.[1] ?? []);
  }

  /** What the last agent that ended had not closed or freed. */
  left(): string {
    return readFileSync(join(this.#hns, "left.txt"), "utf8").trim();
  }

  async ask(what: "healthz" | "metrics"): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${what === "metrics" ? this.#ports.metrics : this.#ports.health}/${what}`);
    return `${response.status} ${await response.text()}`;
  }
}

function shortened(line: string): string {
  const {
    IpConfigurations: addresses,
    FrontendVIPs: vips,
    PortMappings: ports,
    HostComputeEndpoints: ids,
  } = JSON.parse(line.slice(39)) as {
    readonly IpConfigurations?: readonly { readonly IpAddress: string }[];
    readonly FrontendVIPs?: readonly string[];
    readonly PortMappings?: readonly { readonly ExternalPort: number; readonly InternalPort: number }[];
    readonly HostComputeEndpoints?: readonly string[];
  };
  if (addresses !== undefined) return `endpoint ${addresses[0]?.IpAddress}`;
  return `balancer ${vips?.[0] ?? "any"} ${ports?.[0]?.ExternalPort} to ${ids?.length} at ${ports?.[0]?.InternalPort}`;
}

describe("the agent on Windows: Node and koffi under Wine, and a stub of HNS", needs("wine"), () => {
  let node: WindowsNode;
  let api: ApiServer;
  let agent: RunningProgram;

  beforeAll(async () => {
    const authority = createAuthority("lab", Date.now());
    const certificate = authority.issue({ commonName: "api", hosts: ["127.0.0.1"] });
    api = await createApiServer({ token: TOKEN, tls: { ...certificate, ca: authority.cert } });
    api.apply(rawNode("node1", { addresses: ["172.18.0.1"] }));
    api.apply(rawService("cart", { type: "NodePort", ports: [{ name: "http", port: 80, protocol: "TCP", nodePort: 30080 }] }));
    api.apply(
      rawSlice("cart", [
        { ip: "10.1.1.1", node: "node1" },
        { ip: "10.1.2.1", node: "node2" },
      ]),
    );
    node = await WindowsNode.boot(authority.cert);
    agent = await node.start(api);
  });
  afterAll(async () => {
    await node?.machine.stop();
    await api?.close();
  });

  it("serves what the API server tells the pod's service account, endpoints first", async () => {
    const wanted = ["endpoint 10.1.2.1", "balancer 10.96.0.1 80 to 2 at 8080", "balancer any 30080 to 2 at 8080"];
    await expect.poll(() => node.objects().toSorted()).toEqual(wanted.toSorted());
    expect(node.changes()).toEqual(["CreateEndpoint", "CreateLoadBalancer", "CreateLoadBalancer"]);
  });

  it("follows changes, and removes load balancers before their endpoints", async () => {
    api.apply(
      rawSlice("cart", [
        { ip: "10.1.1.1", node: "node1" },
        { ip: "10.1.2.2", node: "node2" },
      ]),
    );
    await expect.poll(() => node.objects()).toContain("endpoint 10.1.2.2");
    await expect.poll(() => node.objects()).not.toContain("endpoint 10.1.2.1");
    expect(node.changes()).toEqual(["CreateEndpoint", "ModifyLoadBalancer", "ModifyLoadBalancer", "DeleteEndpoint"]);
    api.delete("Service", "shop", "cart");
    await expect.poll(() => node.objects()).toEqual([]);
    expect(node.changes()).toEqual(["DeleteLoadBalancer", "DeleteLoadBalancer", "DeleteEndpoint"]);
    api.apply(rawService("cart"));
    await expect.poll(() => node.objects()).toHaveLength(2);
  });

  it("answers for its health and its metrics", async () => {
    await expect.poll(() => node.ask("healthz")).toMatch(/^200 /);
    expect(await node.ask("metrics")).toMatch(/^200 [^]*turnout_sync/);
  });

  it("killed and started anew, finds what it made and makes nothing", async () => {
    const before = node.objects();
    node.changes();
    agent.kill();
    await agent.ended;
    agent = await node.start(api);
    await expect.poll(() => agent.output()).toMatch(/"family":"IPv4".*"msg":"first sync done"/);
    expect([node.changes(), node.objects()]).toEqual([[], before]);
  });

  it("ends when its configuration changes, to be started with it, and has closed and freed everything", async () => {
    node.configure("16m");
    const { code, stderr } = await agent.ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining("[restart_needed] the configuration file changed")]);
    expect(node.left()).toBe("handles 0 texts 0 bad handles 0");
    expect(agent.output()).not.toMatch(/"level":"(?:warn|error)"/);
    expect(node.objects()).toHaveLength(2);
  });
  it("the first hour on a node tells what HNS does, and leaves it as it was", async () => {
    const before = node.objects();
    const found = await node.firstHour();
    // The stub refuses nothing, so each trial makes one more.
    expect(found).toContain("another one at its address: made, too");
    const there = before.filter((line) => line.startsWith("balancer ")).length;
    expect(found).toMatch(new RegExp(`^looking at all: ${there + 54} in \\d+ ms$`, "m"));
    expect(found).toContain(
      "removing load balancers: 54 removed\nremoving endpoints: 1 HNS: 0x803b0002: The endpoint was not found., 1 removed\n",
    );
    expect([node.objects(), node.left()]).toEqual([before, "handles 0 texts 0 bad handles 0"]);
  });
});
