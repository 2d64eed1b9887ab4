import { ALL_CAPABILITIES, defineBackend, objectId } from "@turnout/core/backend";
import type { Backend, BackendModule, IPFamily, CountName, Counts } from "@turnout/core/backend";
import { EchoCount, OwnCommits, readParameter } from "@turnout/host";
import type { CommitMark } from "@turnout/host";
import { IptablesTool, legacyFingerprints, lookupIn } from "@turnout/host/iptables";
import type { IptablesLookup } from "@turnout/host/iptables";
import { placeOf, readCounted } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { Applier } from "./apply.ts";
import { otherRulesThan } from "./other-rules.ts";
import { canCount, COUNTERS, counterMetrics } from "./counters.ts";
import { describeObject } from "./describe.ts";
import { ROUTE_LOCALNET } from "./layout.ts";
import { Leaver } from "./leaver.ts";
import type { IptablesObject } from "./objects.ts";
import { answersOnLoopback, parseSaved } from "./observe.ts";
import { IPTABLES_OPTIONS } from "./options.ts";
import type { IptablesFacts, IptablesOptions } from "./options.ts";
import { iptablesMetrics } from "./metrics.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeIptables, readFacts } from "./probe.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { watchHost } from "./watching/watch.ts";
import { createIptablesWorld } from "./world.ts";
import type { IptablesWorld } from "./world.ts";

/** Chains of the filter table that refuse and drop by a destination, and what a drop there means. */
const REFUSING: Readonly<Record<string, CountName>> = {
  "KUBE-SERVICES": "dropsWithoutLocal",
  "KUBE-EXTERNAL-SERVICES": "dropsWithoutLocal",
  "KUBE-PROXY-FIREWALL": "dropsOutsideRanges",
};
const TO_ENDPOINT = /-j KUBE-SEP-/;

/**
 * Read what the kernel counted for each row's chains and rules out of what `iptables-save -c` printed.
 *
 * Edges: a chain or rule that is written again begins anew. A rule's packets are those of connections: the nat table sees the first of each.
 */
function parseCounts(nat: string, filter: string, family: IPFamily): ReadonlyMap<string, Counts> {
  const found = new Map<string, Counts>();
  for (const [chain, rules] of readCounted(nat, family, (name) => /^KUBE-SV[CL]-/.test(name))) {
    const connections = rules.reduce((sum, { rule, packets }) => sum + (TO_ENDPOINT.test(rule) ? packets : 0), 0);
    if (connections > 0) found.set(objectId({ kind: "chain", key: `nat ${chain}`, value: "" }), { connections });
  }
  for (const [chain, rules] of readCounted(filter, family, (name) => REFUSING[name] !== undefined)) {
    for (const { rule, packets } of rules) {
      const count = rule.includes("-j REJECT") ? "rejects" : rule.endsWith("-j DROP") ? REFUSING[chain] : undefined;
      if (count !== undefined && packets > 0)
        found.set(objectId({ kind: "rule", key: `filter ${chain} ${rule}`, value: 1 }), { [count]: packets });
    }
  }
  return found;
}

/** The iptables dataplane as a backend module. */
export const iptablesModule: BackendModule<IptablesOptions, IptablesFacts, IptablesObject, Step, IptablesWorld> = defineBackend({
  name: "iptables",
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: {
    undefinedClusterIPPort: "pass",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "anyLocalAddress",
    rejectFromHost: false,
    blockedWithoutEndpoints: "reject",
    affinityScope: "row",
    nodePortsOnLoopback: "IPv4",
  },
  // A change costs the legacy tool the whole table (2 s at 50,000), and loading costs the nft variant the square of it (5 s at 10,000).
  serviceEntriesMax: 20_000,
  countingOptions: {},
  rights: {
    CAP_NET_ADMIN: "program iptables and forget flows",
    CAP_NET_RAW: "program legacy iptables",
  },
  createWorld: createIptablesWorld,
  options: IPTABLES_OPTIONS,
  facts: (_options, world, signal) => readFacts(world, signal),
  probe: probeIptables,
  share: (options, world): Shared => ({ options, world, own: new OwnCommits(), lookup: lookupIn(world, options.variant) }),
  family: backendOf,
});

/** What both families share. */
interface Shared {
  readonly options: IptablesOptions;
  readonly world: IptablesWorld;
  readonly own: OwnCommits;
  readonly lookup: IptablesLookup;
}

function backendOf(family: IPFamily, { options, world, own, lookup }: Shared): Backend<IptablesFacts, IptablesObject, Step> {
  const { exec, netlink, clock } = world;
  const tool = new IptablesTool(world, family, lookup);
  const echoes = new EchoCount();
  const fingerprints = legacyFingerprints({ family, clock, tool, netlink });
  const applier = new Applier(tool, { own, echoes, fingerprints }, world);
  const leaver = new Leaver({ family, world, own, echoes });
  const hasGuard = family === "IPv4" && options.localhostNodePorts;
  /** When the host was last looked at; undefined: never, or by a variant that reports nothing. */
  let mark: CommitMark | undefined;
  return {
    /** The kernel reports commits of the nft variant. Of the legacy variant it reports nothing, and before the first look the variant is not known. */
    get reportsDrift() {
      return tool.variant === "nft";
    },
    skeleton: (context) => renderSkeleton(context, options),
    isOptional: ({ kind }) => kind === "sysctl",
    render: (row, context) => renderRow(row, context, options),
    plan: planDelta,
    explain: explainPlan,
    async observe(signal) {
      mark = (await tool.choice(signal)).variant === "nft" ? await own.mark(netlink) : undefined;
      const objects = new Map([...parseSaved(await tool.saveAll(signal), family, hasGuard), ...(await readCounters(netlink))]);
      if (hasGuard && answersOnLoopback(objects)) objects.set(...(await readRouteLocalnet(exec, signal)));
      applier.looked(objects.values());
      return { objects, lingering: [] };
    },
    async lookup(objects, signal) {
      const chainsOf = (table: TableName): readonly string[] => {
        const places = objects.filter(({ kind }) => kind !== "sysctl" && kind !== "counter").map(placeOf);
        return [...new Set(places.filter((place) => place.table === table).map(({ chain }) => chain))];
      };
      const saved = await tool.saveChains({ filter: chainsOf("filter"), nat: chainsOf("nat"), mangle: chainsOf("mangle") }, signal);
      const found = new Map([...parseSaved(saved, family, true), ...(await readCounters(netlink))]);
      if (objects.some(({ kind }) => kind === "sysctl")) found.set(...(await readRouteLocalnet(exec, signal)));
      const ids = new Set(objects.map(objectId));
      const isOther = otherRulesThan(objects, family);
      return new Map([...found].filter(([id, object]) => ids.has(id) || isOther(object)));
    },
    isWayIn: ({ kind, key }, device) => kind === "jumps" && key === `nat ${device === "" ? "OUTPUT" : "PREROUTING"}`,
    describe: (object, held) => describeObject(object, family, held),
    apply: (plan, signal) => applier.apply(plan, signal),
    forgetFlows: (flows, signal) => netlink.deleteFlows(family, flows, signal),
    metrics: async () => [...iptablesMetrics(applier.numbers, tool.waits), ...(await counterMetrics(netlink))],
    /** The kernel counts what each rule matches; nothing is written for it. Listing takes as long as looking at the host does. */
    async counts(signal) {
      const [nat, filter] = await Promise.all([tool.saveCounted("nat", signal), tool.saveCounted("filter", signal)]);
      return parseCounts(nat, filter, family);
    },
    watch: (signal) => watchHost({ world, family, own, tool, echoes, fingerprints, mark, hasGuard }, signal),
    async cleanup(signal) {
      try {
        await leaver.removeAll(signal);
      } finally {
        // The last family to be removed deletes them: the rules of the other one use them as well.
        if (await canCount(netlink)) for (const name of Object.values(COUNTERS)) await netlink.deleteCounter(name);
      }
    },
    /** kube-proxy's chains are ours as well, so in the variant in use nothing is left over: what is there was adopted. */
    leftovers: async (isInUse, signal) => await leaver.leftovers(isInUse ? (await tool.choice(signal)).variant : undefined, signal),
  };
}

async function readRouteLocalnet(exec: IptablesWorld["exec"], signal: AbortSignal): Promise<[string, IptablesObject]> {
  const value = (await readParameter(exec, ROUTE_LOCALNET, signal)) ?? "";
  return [`sysctl ${ROUTE_LOCALNET}`, { kind: "sysctl", key: ROUTE_LOCALNET, value }];
}

/** The counters that are there. */
async function readCounters(netlink: IptablesWorld["netlink"]): Promise<readonly (readonly [string, IptablesObject])[]> {
  if (!(await canCount(netlink))) return [];
  const found: (readonly [string, IptablesObject])[] = [];
  for (const key of Object.values(COUNTERS)) {
    if ((await netlink.counterPackets(key)) !== undefined) found.push([`counter ${key}`, { kind: "counter", key, value: true }]);
  }
  return found;
}
