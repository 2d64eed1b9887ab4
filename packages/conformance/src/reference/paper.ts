import { ALL_CAPABILITIES, FAMILIES, hostPort, nodePortAddresses, objectId, ProxyError, unusableReason } from "@turnout/core";
import type {
  Backend,
  BackendModule,
  Context,
  Delta,
  FlowFilter,
  HostEvent,
  IPFamily,
  Observed,
  Outcome,
  Plan,
  ServicePort,
} from "@turnout/core";
import { paperKey } from "./paper-objects.ts";
import type { PaperFacts, PaperObject, PaperStep, PaperWorld } from "./paper-objects.ts";

const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/**
 * The reference backend: it writes the rules of each destination down as they are, with a tool that only the paper host has.
 *
 * Shape: all capabilities and the reference variants. What the kit is tried on, and the shortest example of a whole backend.
 */
export const paper: BackendModule<undefined, PaperFacts, PaperObject, PaperStep, PaperWorld> = {
  name: "paper",
  contract: 2,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: {
    undefinedClusterIPPort: "reject",
    unallocatedClusterIP: "drop",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "drop",
    affinityScope: "row",
    nodePortsOnLoopback: "never",
  },
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  parseOptions: () => undefined,
  probe: async (_options, world) => ({ facts: await readFacts(world), versions: { paper: "1" }, problems: [] }),
  open: (_options, world) => Promise.resolve({ family: (family) => openPaper(family, world), close: () => Promise.resolve() }),
};

function openPaper(family: IPFamily, world: PaperWorld): Backend<PaperFacts, PaperObject, PaperStep> {
  const run = async (verb: string, input: string, signal: AbortSignal): Promise<string> => {
    const { code, stdout, stderr } = await world.exec.run("paper", [verb, family], { input, signal });
    if (code !== 0) throw new ProxyError("tool_failed", `paper ${verb} failed: ${stderr}`);
    return stdout;
  };
  return {
    skeleton: renderNode,
    render: renderRow,
    isShared: ({ kind }) => kind === "clusterIP",
    plan: planDelta,
    explain: ({ steps }: Plan<PaperStep>): string => steps.map((step) => `${step.do} ${objectId(step.object)}`).join("\n"),
    async observe(signal: AbortSignal): Promise<Observed<PaperObject>> {
      const objects = JSON.parse(await run("list", "", signal)) as readonly PaperObject[];
      return { objects: new Map(objects.map((object) => [objectId(object), object])), lingering: [] };
    },
    async apply({ steps }: Plan<PaperStep>, signal: AbortSignal): Promise<Outcome<PaperObject>> {
      if (steps.length > 0) await run("write", steps.map((step) => JSON.stringify(step)).join("\n"), signal);
      return {};
    },
    forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> => world.deleteFlows(family, flows, signal),
    async *watch(signal: AbortSignal): AsyncIterable<HostEvent<PaperFacts>> {
      for await (const _ of world.watchAddresses(signal)) yield { kind: "facts", facts: await readFacts(world) };
    },
  };
}

async function readFacts(world: PaperWorld): Promise<PaperFacts> {
  const [IPv4 = [], IPv6 = []] = await Promise.all(FAMILIES.map(async (family) => (await world.addresses(family)).map(({ ip }) => ip)));
  return { addresses: { IPv4, IPv6 } };
}

function renderNode({ node, host }: Context<PaperFacts>): readonly PaperObject[] {
  const { family, addresses, settings, serviceCIDRs, detector } = node;
  const hostAddresses = host.addresses[family];
  const wanted = settings.nodePortAddresses ?? NODE_PORT_ADDRESSES;
  const chosen = nodePortAddresses({ wanted, family, primary: addresses[0], hostAddresses });
  const answering = (chosen === "all" ? hostAddresses : chosen).filter((ip) => unusableReason(ip) === undefined).toSorted();
  const { masqueradeBit } = settings;
  const value = {
    nodePortAddresses: answering,
    serviceCIDRs,
    masqueradeBit,
    ...(detector === undefined ? {} : { detector: { ...detector } }),
  };
  return [{ kind: "node", key: "node", value }];
}

function renderRow(row: ServicePort): readonly PaperObject[] {
  const pool = (indexes: readonly number[]): readonly string[] =>
    indexes.flatMap((index) => row.endpoints.slice(index, index + 1).map(({ ip, port }) => hostPort(ip, port)));
  const common = { row: row.key, cluster: pool(row.cluster), local: pool(row.local), affinitySeconds: row.affinitySeconds ?? 0 };
  return row.destinations.flatMap(({ kind, address, port, rules, sourceRanges }): readonly PaperObject[] => {
    const value = { ...common, rules: rules.map((rule) => ({ ...rule })), sources: sourceRanges ?? [] };
    const key = paperKey(address === "" ? "*" : address, port, row.name.protocol);
    const destination: PaperObject = { kind: "destination", key, value };
    return kind === "clusterIP" ? [destination, { kind: "clusterIP", key: address, value: true }] : [destination];
  });
}

function planDelta({ put, remove }: Delta<PaperObject>): Plan<PaperStep> {
  return {
    steps: [
      ...put.map(({ before, after }) => ({ do: before === undefined ? "add" : "replace", object: after }) as const),
      ...remove.map((object) => ({ do: "remove", object }) as const),
    ],
  };
}
