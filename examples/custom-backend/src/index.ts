/**
 * A Turnout backend that keeps a routing table: one JSON file per family, replaced as a whole by a rename.
 *
 * @packageDocumentation
 */
import {
  ALL_CAPABILITIES,
  defineBackend,
  hostPort,
  nodePortAddresses,
  objectId,
  ProxyError,
  textOption,
  unusableReason,
} from "@turnout/core/backend";
import type { Backend, BackendModule, Context, IPFamily, KernelObject, ServicePort, Target, World } from "@turnout/core/backend";
import { createLinuxWorld, readHostAddresses, type Netlink } from "@turnout/host";
import { parseTable, tableText, type Host, type Route } from "./table.ts";

/** What can be set with `--backend-option`. */
export interface TableOptions {
  /** Where the files are kept; it must exist. */
  readonly directory: string;
}

/** The host's own addresses. */
export type Facts = Readonly<Record<IPFamily, readonly string[]>>;

/** What the backend touches besides programs, the clock and the log: the host's addresses and conntrack. */
export interface TableWorld extends World {
  readonly netlink: Pick<Netlink, "addresses" | "deleteFlows" | "watchAddresses">;
}

/** kube-proxy's nftables mode answers node ports on the primary address alone, and so does the table. */
const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/** Put an object into the table, or remove it. */
export interface Step {
  readonly do: "put" | "remove";
  readonly object: KernelObject;
}

/** The backend module: what `turnout --backend` loads. */
const table: BackendModule<TableOptions, Facts, KernelObject, Step, TableWorld> = defineBackend({
  name: "table",
  residence: "kernel", // the table stays when the process ends
  capabilities: {
    ...ALL_CAPABILITIES,
    SCTP: "readers of the table don't speak it",
    sessionAffinity: "readers of the table remember no clients",
  },
  variants: {
    undefinedClusterIPPort: "pass",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "drop",
    affinityScope: "row",
    nodePortsOnLoopback: "never",
  },
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  createWorld: createLinuxWorld,
  options: { directory: textOption("directory", "/run/turnout-table", "a path from /", /^\//) },
  facts: (_options, { netlink }) => readHostAddresses((family) => netlink.addresses(family)),
  factChanges: ({ netlink }, signal) => netlink.watchAddresses(signal),
  async probe({ directory }, { exec }, signal) {
    const { code } = await exec.run("test", ["-w", directory], { signal });
    const hint = `mkdir -p ${directory}`;
    const problem = new ProxyError("permission_denied", "no directory that can be written", { object: directory, hint });
    return { problems: code === 0 ? [] : [problem] };
  },
  share: ({ directory }, world): Shared => ({ directory, world }),
  family: openTable,
});
export default table;

/** What both families share. */
interface Shared {
  readonly directory: string;
  readonly world: TableWorld;
}

/** Make the backend for one family, on one file. */
function openTable(family: IPFamily, { directory, world: { exec, netlink, log } }: Shared): Backend<Facts, KernelObject, Step> {
  const file = `${directory}/${family}.json`;
  let known: ReadonlyMap<string, KernelObject> | undefined;
  const must = async (program: string, args: readonly string[], signal: AbortSignal, input: string = ""): Promise<string> => {
    const { code, stdout, stderr } = await exec.run(program, args, { signal, input });
    if (code !== 0) throw new ProxyError("tool_failed", `${program} failed (${stderr.trim()})`, { object: file });
    return stdout;
  };
  const read = async (signal: AbortSignal): Promise<ReadonlyMap<string, KernelObject>> => {
    const { code } = await exec.run("test", ["-e", file], { signal });
    if (code !== 0) return new Map();
    return parseTable(await must("cat", [file], signal), (why) => log.warn("the table is not ours", { file, why }));
  };
  return {
    skeleton: renderHost,
    render: renderRow,
    plan: ({ put, remove }) => ({
      steps: [
        ...remove.map((object) => ({ do: "remove" as const, object })),
        ...put.map(({ after }) => ({ do: "put" as const, object: after })),
      ],
    }),
    explain: ({ steps }) => steps.map((step) => `${step.do} ${objectId(step.object)}`).join("\n"),
    async observe(signal) {
      known = await read(signal);
      return { objects: known, lingering: [] };
    },
    async apply({ steps }, signal) {
      const objects = changed(known ?? (await read(signal)), steps);
      known = undefined; // Until the rename is done nobody knows what the file holds.
      await must("dd", [`of=${file}.new`, "status=none"], signal, tableText(objects));
      await must("mv", ["-f", `${file}.new`, file], signal);
      known = objects;
      return {};
    },
    forgetFlows: (flows, signal) => netlink.deleteFlows(family, flows, signal),
    cleanup: async (signal) => void (await must("rm", ["-f", file, `${file}.new`], signal)),
  };
}

/** What is in force once these steps are done. */
function changed(known: ReadonlyMap<string, KernelObject>, steps: readonly Step[]): ReadonlyMap<string, KernelObject> {
  const objects = new Map(known);
  for (const step of steps) {
    if (step.do === "put") objects.set(objectId(step.object), step.object);
    else objects.delete(objectId(step.object));
  }
  return objects;
}

/** What is in the table whatever the services are: how to tell this host and its pods. */
function renderHost({ node: { family, addresses, settings, detector }, host }: Context<Facts>): readonly KernelObject[] {
  const wanted = settings.nodePortAddresses ?? NODE_PORT_ADDRESSES;
  const nodePorts = nodePortAddresses({ wanted, family, primary: addresses[0], hostAddresses: host[family] });
  const answering = nodePorts === "all" ? host[family] : nodePorts;
  const value: Host = {
    addresses: host[family],
    nodePorts: answering.filter((ip) => unusableReason(ip) !== "loopback"),
    ...(detector === undefined ? {} : { pods: detector }),
  };
  return [{ kind: "host", key: "self", value }];
}

/** A row's routes, one for each address it answers on; `*` stands for the addresses that answer node ports. */
function renderRow(row: ServicePort): readonly KernelObject[] {
  const servers = (to: Target): Route["rules"][number]["to"] =>
    to === "reject" || to === "drop"
      ? to
      : row.endpoints.filter((_, index) => row[to].includes(index)).map(({ ip, port }) => hostPort(ip, port));
  return row.destinations.map(({ address, port, sourceRanges = [], rules }) => {
    const value: Route = { service: row.key, sources: sourceRanges, rules: rules.map((rule) => ({ ...rule, to: servers(rule.to) })) };
    return { kind: "route", key: `${row.name.protocol} ${hostPort(address === "" ? "*" : address, port)}`, value };
  });
}
