import { REFERENCE_VARIANTS } from "../oracle/reference-variants.ts";
import { ALL_CAPABILITIES, FAMILIES, hostPort, nodePortAddresses, objectId, ProxyError, unusableReason } from "@turnout/core";
import type {
  Backend,
  BackendModule,
  Context,
  Counts,
  Delta,
  FlowFilter,
  HostEvent,
  IPFamily,
  Observed,
  Outcome,
  Plan,
  SeenPart,
  ServicePort,
} from "@turnout/core";
import { referenceKey } from "./reference-objects.ts";
import type { ReferenceFacts, ReferenceObject, ReferenceStep, ReferenceWorld } from "./reference-objects.ts";

const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/**
 * The reference backend: it writes the rules of each destination down as they are, with a tool that only the reference host has.
 *
 * Shape: all capabilities and the reference variants. What the kit is tried on, and the shortest example of a whole backend.
 */
export const referenceBackend: BackendModule<undefined, ReferenceFacts, ReferenceObject, ReferenceStep, ReferenceWorld> = {
  name: "reference",
  contract: 2,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: REFERENCE_VARIANTS,
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  countingOptions: {},
  parseOptions: () => undefined,
  probe: async (_options, world) => ({ facts: await readFacts(world), versions: { referenceBackend: "1" }, problems: [] }),
  open: (_options, world) => Promise.resolve({ family: (family) => openReference(family, world), close: () => Promise.resolve() }),
};

function openReference(family: IPFamily, world: ReferenceWorld): Backend<ReferenceFacts, ReferenceObject, ReferenceStep> {
  const run = async (verb: string, input: string, signal: AbortSignal): Promise<string> => {
    const { code, stdout, stderr } = await world.exec.run("reference", [verb, family], { input, signal });
    if (code !== 0) throw new ProxyError("tool_failed", `reference ${verb} failed: ${stderr}`);
    return stdout;
  };
  const observed = async (signal: AbortSignal): Promise<ReadonlyMap<string, ReferenceObject>> => {
    const objects = JSON.parse(await run("list", "", signal)) as readonly ReferenceObject[];
    return new Map(objects.map((object) => [objectId(object), object]));
  };
  let writes = 0;
  const seen = async (id: string, signal: AbortSignal): Promise<SeenPart> => {
    const before = writes;
    const found = (await observed(signal)).get(id);
    return {
      covers: (object) => objectId(object) === id,
      objects: new Map(found === undefined ? [] : [[id, found]]),
      isCurrent: () => writes === before,
    };
  };
  return {
    skeleton: renderNode,
    render: renderRow,
    isShared: ({ kind }) => kind === "clusterIP",
    plan: planDelta,
    explain: ({ steps }: Plan<ReferenceStep>): string => steps.map((step) => `${step.do} ${objectId(step.object)}`).join("\n"),
    async observe(signal: AbortSignal): Promise<Observed<ReferenceObject>> {
      return { objects: await observed(signal), lingering: [] };
    },
    async apply({ steps }: Plan<ReferenceStep>, signal: AbortSignal): Promise<Outcome<ReferenceObject>> {
      writes += steps.length;
      if (steps.length > 0) await run("write", steps.map((step) => JSON.stringify(step)).join("\n"), signal);
      return {};
    },
    forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> => world.deleteFlows(family, flows, signal),
    async *watch(signal: AbortSignal): AsyncIterable<HostEvent<ReferenceFacts>> {
      const events = world.watchHost(signal);
      yield { kind: "facts", facts: await readFacts(world) };
      for await (const event of events) {
        if (event.kind === "addresses") yield { kind: "facts", facts: await readFacts(world) };
        else if (event.family === family) yield { kind: "drift", what: `somebody wrote ${event.id}`, left: await seen(event.id, signal) };
      }
    },
    async counts(): Promise<ReadonlyMap<string, Counts>> {
      const found = await world.connections(family);
      return new Map(Array.from(found, ([key, connections]) => [objectId({ kind: "destination", key, value: "" }), { connections }]));
    },
  };
}

async function readFacts(world: ReferenceWorld): Promise<ReferenceFacts> {
  const [IPv4 = [], IPv6 = []] = await Promise.all(FAMILIES.map(async (family) => (await world.addresses(family)).map(({ ip }) => ip)));
  return { addresses: { IPv4, IPv6 } };
}

function renderNode({ node, host }: Context<ReferenceFacts>): readonly ReferenceObject[] {
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

function renderRow(row: ServicePort): readonly ReferenceObject[] {
  const pool = (indexes: readonly number[]): readonly string[] =>
    indexes.flatMap((index) => row.endpoints.slice(index, index + 1).map(({ ip, port }) => hostPort(ip, port)));
  const common = { row: row.key, cluster: pool(row.cluster), local: pool(row.local), affinitySeconds: row.affinitySeconds ?? 0 };
  return row.destinations.flatMap(({ kind, address, port, rules, sourceRanges }): readonly ReferenceObject[] => {
    const value = { ...common, rules: rules.map((rule) => ({ ...rule })), sources: sourceRanges ?? [] };
    const key = referenceKey(address === "" ? "*" : address, port, row.name.protocol);
    const destination: ReferenceObject = { kind: "destination", key, value };
    return kind === "clusterIP" ? [destination, { kind: "clusterIP", key: address, value: true }] : [destination];
  });
}

function planDelta({ put, remove }: Delta<ReferenceObject>): Plan<ReferenceStep> {
  return {
    steps: [
      ...put.map(({ before, after }) => ({ do: before === undefined ? "add" : "replace", object: after }) as const),
      ...remove.map((object) => ({ do: "remove", object }) as const),
    ],
  };
}
