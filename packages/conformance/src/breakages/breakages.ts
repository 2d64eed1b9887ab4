import { replacing } from "@turnout/core/testing";
import type { BackendModule, Rule, ServicePort, Counts } from "@turnout/core";
import { breakDestinations, BROKEN_APPLIERS } from "./broken-writers.ts";
import { withBackend, withHost } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import { indexesOf, withNode, withoutEmptyPools, withRows, withRules } from "./broken-backend.ts";
import type { Defect } from "./broken-backend.ts";
import { BROKEN_EDGES, withoutHairpin } from "./broken-edges.ts";
import { BROKEN_ORDER } from "./broken-order.ts";
import { BROKEN_RECOVERY } from "./broken-recovery.ts";
import { BROKEN_TURNS } from "./broken-turns.ts";
import { BROKEN_WATCHES } from "./broken-watches.ts";
import { checkBackend, checkScenarios } from "../checks/check.ts";
import type { CreateFakeHost, OptionalMember } from "../runner/fake-host.ts";
import type { ConformanceReport, Finding, FindingKind } from "../checks/finding.ts";
import { checkHistories } from "../histories/histories.ts";
import type { Scenario } from "../runner/scenario.ts";
import type { Subject } from "../runner/subject.ts";

type Counting = NonNullable<AnyBackend["counts"]>;
type Counted = ReadonlyMap<string, Counts>;

/** Make a subject whose backends count otherwise, and say that they do. */
function withCounts(change: (counted: Counted, asked: number) => Counted): (subject: Subject) => Subject {
  return (subject) => {
    const broken = withBackend((inner) => ({ counts: changed(inner, change) }))(subject);
    return { ...broken, module: replacing(broken.module, { countingOptions: subject.module.countingOptions ?? {} }) };
  };
}

function changed(inner: AnyBackend, change: (counted: Counted, asked: number) => Counted): Counting {
  let asked = 0;
  return async (signal, isKnown) => change((await inner.counts?.(signal, isKnown)) ?? new Map<string, Counts>(), ++asked);
}

/** No object has this identity. */
const ANYTHING = "nothing of anybody";

/** Defects of those that count. */
const BROKEN_COUNTS: Readonly<Record<string, Defect>> = {
  "counts for what no row owns": [
    "the contract: counts",
    withCounts((counted) => new Map([...counted, [ANYTHING, { connections: 1 }]])),
    ["contract"],
    "counted",
  ],
  "does not count connections": ["the contract: counts", withCounts(() => new Map()), ["contract"], "counted"],
  "counts each connection twice": ["the contract: counts", withCounts((counted) => times(counted, 2)), ["contract"], "counted"],
  "counts below nothing": [
    "the contract: counts",
    withCounts((counted) => new Map(Array.from([...counted, [ANYTHING, {}] as const], ([id]) => [id, { connections: -1 }]))),
    ["contract"],
    "counted",
  ],
};

function times(counted: Counted, factor: number): Counted {
  return new Map(Array.from(counted, ([id, counts]) => [id, { ...counts, connections: (counts.connections ?? 0) * factor }]));
}

const SHOWS_NOTHING = withHost(() => ({ own: () => [], external: () => [], tamper: () => undefined, setFault: () => undefined }));

/** Hosts that hide what the kit would have to see. */
const BROKEN_HOSTS: Readonly<Record<string, Defect>> = {
  "has a host that shows nothing of its own": ["the contract: the host's own()", withHost(() => ({ own: () => [] })), ["contract"]],
  "has a host that always shows the same as its own": [
    "the contract: the host's own()",
    withHost(() => ({ own: () => ["a table"] })),
    ["contract"],
  ],
  "has a host with nothing foreign": ["the contract: the host's foreign()", withHost(() => ({ external: () => [] })), ["contract"]],
  "has a host that nobody tampers with": ["the contract: the host's tamper()", withHost(() => ({ tamper: () => undefined })), ["contract"]],
  "has a host where tampering does nothing": [
    "the contract: the host's tamper()",
    withHost(() => ({ tamper: () => "delete everything" })),
    ["contract"],
  ],
  "has a host where nothing fails": ["the contract: the host's setFault()", withHost(() => ({ setFault: () => undefined })), ["contract"]],
  "has a host that fails only before a change": [
    "the contract: the host's setFault()",
    withHost((host) => ({ setFault: (fault) => host.setFault(fault?.when === "before" ? fault : undefined) })),
    ["contract"],
  ],
  "has a host that remembers no flows": [
    "the contract: the host's flows",
    withHost((host) => ({ connect: (packet, random) => host.trace(packet, random) })),
    ["contract"],
  ],
  "cleans up nothing on a host that shows nothing": [
    "the contract: cleanup",
    (subject) => SHOWS_NOTHING(withBackend(() => ({ cleanup: () => Promise.resolve() }))(subject)),
    ["contract"],
  ],
};

/** A deliberate defect, for any backend: the kit must catch each. */
export interface Breakage {
  readonly name: string;
  /** What it offends against: rules, or a duty of the contract. */
  readonly of: string;
  /** What kinds of finding show it. */
  readonly kinds: readonly FindingKind[];
  /** Rules of which such a finding must name one; none: it is a duty of the contract. */
  readonly rules: readonly string[];
  /** The optional member of the host without which the kit can't catch it; absent: there is none. */
  readonly needs?: OptionalMember;
  apply(module: BackendModule, createFakeHost: CreateFakeHost): Subject;
}

const isPool = ({ to }: Rule): boolean => to === "cluster" || to === "local";
const ready = (row: ServicePort): readonly number[] => indexesOf(row, (endpoint) => endpoint.ready);

/** What it takes to send a packet anywhere in the cluster, whatever the policy. */
function everywhere(row: ServicePort): ServicePort {
  return row.cluster.length > 0 ? row : { ...row, cluster: ready(row) };
}

/** Defects of those that decide: what rules and pools are made into. */
const BROKEN_MINDS: Readonly<Record<string, Defect>> = {
  "refuses what it should drop": [
    "R-27, R-33",
    withRules((rules) => rules.map((rule) => (rule.to === "drop" ? { ...rule, to: "reject" } : rule))),
  ],
  "drops what it should refuse": [
    "R-23, R-29",
    withRules((rules) => rules.map((rule) => (rule.to === "reject" ? { ...rule, to: "drop" } : rule))),
  ],
  "does not know the internal policy": [
    "R-22, R-27",
    withRows((row) => {
      if (!row.internalLocal) return row;
      const to = (rule: Rule): Rule => ({ ...rule, to: rule.to === "reject" ? "reject" : "cluster" });
      return withoutEmptyPools(breakDestinations(everywhere(row), ({ kind, rules }) => (kind === "clusterIP" ? rules.map(to) : rules)));
    }),
  ],
  "does not know the external policy": [
    "R-30, R-33",
    withRules((rules, { kind }, row) =>
      kind === "clusterIP" || !row.externalLocal
        ? rules
        : [...rules.filter(({ from }) => from === "outsideSourceRanges"), ...clusterOrRefuse(row)],
    ),
  ],
  "keeps to the local pool what is short-circuited": [
    "R-31, R-32",
    withRules((rules) => rules.filter(({ from }) => from !== "localPod" && from !== "thisHost")),
  ],
  "never masquerades": ["R-24, R-28", withRules((rules) => rules.map((rule) => ({ ...rule, masquerade: false })))],
  "masquerades everything": ["R-22, R-30", withRules((rules) => rules.map((rule) => ({ ...rule, masquerade: isPool(rule) })))],
  "takes pods for strangers": [
    "R-24, R-31",
    withNode(({ node, host }) => {
      const nobodys = node.family === "IPv4" ? "192.0.2.0/24" : "2001:db8::/32";
      return { node: { ...node, detector: { by: "cidr", cidrs: [nobodys] } }, host };
    }),
  ],
  "forgets the hairpin": ["R-36", withoutHairpin(() => true)],
  "does not know source ranges": ["R-39", withRules((rules) => rules.filter(({ from }) => from !== "outsideSourceRanges"))],
  "does not use terminating endpoints": [
    "R-17",
    withRows((row) => {
      const fit = (pool: readonly number[]): readonly number[] => pool.filter((index) => row.endpoints[index]?.ready === true);
      return withoutEmptyPools({ ...row, cluster: fit(row.cluster), local: fit(row.local) });
    }),
  ],
  "uses endpoints that are not ready": [
    "R-17",
    withRows((row) => (row.cluster.length === 0 ? row : { ...row, cluster: row.endpoints.map((_, index) => index) })),
  ],
  "does not know topology": ["R-19, R-20", withRows((row) => (row.topology === "" ? row : { ...row, cluster: ready(row) }))],
  "uses the first endpoint only": ["R-22", withRows((row) => ({ ...row, cluster: row.cluster.slice(0, 1), local: row.local.slice(0, 1) }))],
  "loses affinity": ["R-46", withRows((row) => ({ ...row, affinitySeconds: undefined })), ["affinity"]],
  "never lets go of a client": [
    "R-08",
    withRows((row) => ({ ...row, affinitySeconds: row.affinitySeconds === undefined ? undefined : row.affinitySeconds * 1000 })),
    ["affinity"],
  ],
  "answers node ports on all addresses": [
    "R-37",
    withNode(({ node, host }) => ({ node: { ...node, settings: { ...node.settings, nodePortAddresses: [] } }, host })),
  ],
  "leaves undefined ports alone": [
    "R-47",
    withRows((row) => ({
      ...row,
      destinations: row.destinations.map((one) => (one.kind === "clusterIP" ? { ...one, kind: "externalIP" } : one)),
    })),
  ],
  "leaves unallocated addresses alone": ["R-48", withNode(({ node, host }) => ({ node: { ...node, serviceCIDRs: [] }, host }))],
  "leaves node ports out": [
    "R-28",
    withRows((row) => ({ ...row, destinations: row.destinations.filter(({ kind }) => kind !== "nodePort") })),
  ],
  "serves one family with the other's hands": ["R-03", withBackend((_, { dataplane }) => dataplane.family("IPv4")), ["verdict", "error"]],
};

function clusterOrRefuse({ cluster }: ServicePort): readonly Rule[] {
  return cluster.length > 0 ? [{ from: "anyone", to: "cluster", masquerade: true }] : [{ from: "anyone", to: "reject", masquerade: false }];
}

const VERDICT: readonly FindingKind[] = ["verdict"];

/** Backends that are wrong on purpose, each in one way. */
export const BREAKAGES: readonly Breakage[] = Object.entries<Defect>({
  ...BROKEN_MINDS,
  ...BROKEN_COUNTS,
  ...BROKEN_EDGES,
  ...BROKEN_APPLIERS,
  ...BROKEN_HOSTS,
  ...BROKEN_ORDER,
  ...BROKEN_RECOVERY,
  ...BROKEN_TURNS,
  ...BROKEN_WATCHES,
}).map(([name, [of, apply, kinds = VERDICT, needs]]) => ({
  name,
  of,
  kinds,
  rules: of.startsWith("R-") ? of.split(", ") : [],
  ...(needs && { needs }),
  apply: (module, createFakeHost) => apply({ module, createFakeHost }),
}));

/** How many findings are looked through for one that shows a defect. */
const ENOUGH = 200;

/** Rules about what happens on the way, which every backend is asked about before any scenario is played. */
const ON_THE_WAY: ReadonlySet<string> = new Set(["R-55", "R-58"]);

/**
 * Have the kit examine a backend that was broken on purpose.
 *
 * Shape: what the whole examination does, in the order that ends soonest, and no further than to the finding: the scenarios of the rules it offends
 * against, what is asked of every backend, histories, the other scenarios. What offends on the way alone begins with what is asked of every backend.
 * The first finding of the kinds and rules that show the defect; else the first of all, or undefined if the kit noticed nothing.
 */
export async function catchBreakage(
  breakage: Breakage,
  module: BackendModule,
  createFakeHost: CreateFakeHost,
  scenarios: readonly Scenario[],
): Promise<Finding | undefined> {
  const { kinds, rules } = breakage;
  const broken = breakage.apply(module, createFakeHost);
  const isReporting = (scenario: Scenario): boolean => scenario.rules.some((rule) => rules.includes(rule));
  const isLookedFor = (finding: Finding): boolean =>
    kinds.includes(finding.kind) && (rules.length === 0 || finding.rules.some((rule) => rules.includes(rule)));
  const options = { maxFindings: ENOUGH, isLookedFor };
  const { reporting = [], others = [] } = Object.groupBy(scenarios, (scenario) => (isReporting(scenario) ? "reporting" : "others"));
  const execute = (some: readonly Scenario[]) => (): Promise<ConformanceReport> => checkScenarios(broken, some, options);
  const examinations = [
    () => checkBackend(broken.module, broken.createFakeHost, [], options),
    () => checkHistories(broken.module, broken.createFakeHost, { steps: 1500 }),
    execute(others),
  ];
  examinations.splice(rules.every((rule) => ON_THE_WAY.has(rule)) ? 2 : 0, 0, execute(reporting));
  let first: Finding | undefined;
  for (const examine of examinations) {
    const { findings } = await examine();
    const found = findings.find(isLookedFor);
    if (found !== undefined) return found;
    first ??= findings[0];
  }
  return first;
}
