import { objectId } from "../contract/backend.ts";
import type { Backend, Context, KernelObject } from "../contract/backend.ts";
import type { ServicePort } from "../model/rows.ts";
import { operatingError } from "../model/errors.ts";
import { haveManyEndpoints } from "../model/many-endpoints.ts";
import { printableName } from "../model/names.ts";
import { rankedCauses } from "./answer.ts";
import type { Answer, Cause, Fate, Step, UnjudgedRule } from "./answer.ts";
import { firstDifference } from "./first-difference.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";
import { familiesCause, walkPacket } from "./walk.ts";
import type { Walk } from "./walk.ts";

/** What was found on the rest of a packet's way. */
export interface Survey {
  readonly steps: readonly Step[];
  readonly causes: readonly Cause[];
  /** Worth knowing, and nothing that is wrong here; absent: nothing. */
  readonly notes?: readonly string[];
  /** What could not be looked at, and why. */
  readonly unseen: readonly string[];
  /** Rules of which it can't be told whether they fit; absent: none. */
  readonly unjudged?: readonly UnjudgedRule[];
  /** It connected to the endpoints. */
  readonly isProbed?: boolean;
}

/** A question, and where answers are found. */
export interface PacketQuestion<H, K extends KernelObject, S> {
  readonly packet: AskedPacket;
  readonly state: ExplainedState;
  readonly backend: { readonly name: string; readonly family: Backend<H, K, S>; readonly host: H };
  /** Looks at what else decides on this host; absent: nobody does. */
  readonly survey?: (fate: Fate, signal: AbortSignal) => Promise<Survey>;
  /** What is known otherwise, e.g. that no proxy runs. */
  readonly causes?: readonly Cause[];
  /** The flags are those of the proxy that answers; absent: of a command. */
  readonly isOfProxy?: true;
  /** What the backend has in force is in the process of the proxy, which is this one; absent: it is in the kernel. */
  readonly isInProcess?: true;
  /** What the backend has in force is in the process of the proxy, and this is another one; absent: it is in the kernel, or this is the proxy. */
  readonly isInOtherProcess?: true;
  /** Why it isn't known which flags the rules in the kernel were made with; absent: it is. */
  readonly unknownFlags?: string;
}

/**
 * Explain what becomes of one packet: what the desired state says, whether the kernel holds what that takes, and what else decides. Reads only.
 *
 * Edges: what can't be looked at is named in the answer, and the rest of it holds.
 */
export async function explainPacket<H, K extends KernelObject, S>(question: PacketQuestion<H, K, S>, signal: AbortSignal): Promise<Answer> {
  const { packet, backend, survey } = question;
  const { family } = backend;
  const context = contextOf(question.state, backend);
  const state: ExplainedState = { ...question.state, unserved: (device) => family.unserved?.(device, context) };
  const walk = walkPacket(state, packet);
  const isImpossible = familiesCause(packet) !== undefined;
  // Of a packet that can't be nothing else is worth a word.
  const causes = isImpossible ? [] : (question.causes ?? []);
  const [kernel, others, rest] = await Promise.all([
    seen("the kernel's rules", isImpossible ? undefined : lookAtKernel(question, walk, signal)),
    seen("other proxies", isImpossible ? undefined : lookForOthers(question, signal)),
    seen("the way", isImpossible ? undefined : survey?.(walk.fate, signal)),
  ]);
  return {
    packet,
    node: state.node.name,
    backend: backend.name,
    steps: [...walk.steps, ...kernel.steps, ...rest.steps],
    fate: walk.fate,
    causes: rankedCauses([
      ...walk.causes,
      ...refusalCauses(state, walk),
      ...repairedByStart(withoutTwice(kernel.causes, causes), [...rest.causes, ...causes]),
      ...others.causes,
      ...rest.causes,
      ...causes,
    ]),
    notes: [...walk.notes, ...(rest.notes ?? [])],
    unseen: [...kernel.unseen, ...others.unseen, ...rest.unseen],
    unjudged: rest.unjudged ?? [],
    isSurveyed: survey !== undefined,
    isProbed: false,
  };
}

/** That the flags differ needs to be said once: best by who knows which. What else differs they may explain, so it is a guess. */
function withoutTwice(kernel: readonly Cause[], known: readonly Cause[]): readonly Cause[] {
  if (!saysOtherFlags(known)) return kernel;
  return kernel.filter((cause) => !saysOtherFlags([cause])).map((cause) => ({ ...cause, isSure: false }));
}

function saysOtherFlags(causes: readonly Cause[]): boolean {
  return causes.some(({ id }) => id === "other_flags");
}

/** Where no proxy keeps the kernel's rules, nothing puts them right before one does again: that is what mends them, and no reason to blame it first. */
function repairedByStart(kernel: readonly Cause[], known: readonly Cause[]): readonly Cause[] {
  const gone = known.find(({ id }) => id === "not_running");
  if (gone === undefined) return kernel;
  const { fix, commands } = gone;
  const start = { fix: `no proxy is at work here, so nothing puts this right: ${fix}`, ...(commands === undefined ? {} : { commands }) };
  return kernel.map((cause) => (cause.id.startsWith("kernel_") ? { ...cause, ...start } : cause));
}

/** The running proxy tried, and the host refused. */
function refusalCauses({ refusals = [] }: ExplainedState, { hit }: Walk): readonly Cause[] {
  if (hit === undefined) return [];
  const { key, name } = hit.row;
  return refusals
    .filter(({ rows }) => rows.includes(key))
    .map(({ object, error: { message, hint } }) => ({
      id: "refused_row",
      says: `the host refused ${object ?? "the rules"} of Service ${printableName(name)}${object === undefined ? ", which are left as they were" : ""}: ${message}`,
      show: ["turnout status"],
      fix: hint ?? "see the proxy's log around that time; the proxy tries again by itself",
    }));
}

/** Add to an answer what was found on the rest of the packet's way. Pure. */
export function withSurvey(answer: Answer, { steps, causes, notes = [], unseen, unjudged = [], isProbed = false }: Survey): Answer {
  return {
    ...answer,
    steps: [...answer.steps, ...steps],
    causes: rankedCauses([...answer.causes, ...causes]),
    notes: [...(answer.notes ?? []), ...notes],
    unseen: [...answer.unseen, ...unseen],
    unjudged: [...answer.unjudged, ...unjudged],
    isSurveyed: true,
    isProbed: answer.isProbed || isProbed,
  };
}

const NOTHING: Survey = { steps: [], causes: [], unseen: [] };

/** What failed to be looked at is said, not thrown: the other half of the answer may be all that is needed. */
async function seen(what: string, survey: Promise<Survey> | undefined): Promise<Survey> {
  try {
    return (await survey) ?? NOTHING;
  } catch (error) {
    const known = operatingError(error);
    if (known === undefined) throw error;
    return { steps: [], causes: [], unseen: [`${what}: ${known.message}`] };
  }
}

async function lookAtKernel<H, K extends KernelObject, S>(
  question: PacketQuestion<H, K, S>,
  walk: Walk,
  signal: AbortSignal,
): Promise<Survey> {
  const { packet, state, backend, causes = [] } = question;
  const { family } = backend;
  if (question.isInOtherProcess === true) return { ...NOTHING, unseen: [IN_PROXY] };
  const context = contextOf(state, backend);
  const wanted = wantedObjects(question, walk, context);
  const unwanted = walk.hit === undefined ? staleObjects(packet, state, backend) : [];
  const looked = await family.lookup?.([...wanted, ...unwanted], signal);
  const held = looked ?? (await observed(family, signal));
  const asked = new Set([...wanted, ...unwanted].map(objectId));
  const alongside = [...(looked ?? [])].flatMap(([id, object]) => (asked.has(id) ? [] : [object]));
  const laidOut = wanted.map((object) => {
    const there = held.get(objectId(object));
    return there === undefined ? object : (family.keepPlaces?.(object, there) ?? object);
  });
  const found = firstDifference({ wanted: laidOut, unwanted, held, alongside }, family.describe?.bind(family));
  const isUnknown = question.unknownFlags !== undefined;
  const difference = found?.id === "other_flags" && question.isOfProxy === true ? ofAnotherProxy(found) : found;
  const count = wanted.length + unwanted.length;
  const says =
    difference === undefined
      ? wholeText(walk, count, question)
      : isUnknown
        ? UNKNOWN_FLAGS
        : saysOtherFlags(causes)
          ? OTHER_FLAGS
          : differenceText(difference);
  // Rules that differ may be right, as long as nobody knows the flags of the proxy that made them.
  if (difference !== undefined && isUnknown) {
    const unseen = `the kernel's rules: ${question.unknownFlags}, so its flags are not known; ${unconfirmedText(difference)}`;
    return { steps: [{ says }], causes: [], unseen: [unseen] };
  }
  return { steps: [{ says }], causes: difference === undefined ? [] : [difference], unseen: [] };
}

const IN_PROXY =
  "what answers for the Service: it is in the proxy's process, which alone can tell (ask it: leave out --source, --backend, --config and --node-name)";

const UNKNOWN_FLAGS =
  "whether Turnout's rules for this are in the kernel as they should be can't be told: the proxy doesn't answer, so it isn't known with which flags it made them";

const OTHER_FLAGS = "whether Turnout's rules for this are in the kernel can't be told: they were made with other flags";

/** What should be there, as the packet meets it: the way in, its destination, what all packets share behind that, and then what other destinations need. */
function wantedObjects<H, K extends KernelObject, S>(
  { packet, backend: { family } }: PacketQuestion<H, K, S>,
  { hit }: Walk,
  context: Context<H>,
): readonly K[] {
  const skeleton = family.skeleton(context);
  const isWayIn = (object: K): boolean => family.isWayIn?.(object, packet.device) === true;
  const row = hit === undefined ? [] : family.render(hit.row, context);
  // Objects of a row with fewer destinations may be others, under the same identities.
  const standalone = hit === undefined ? [] : family.render({ ...hit.row, destinations: [hit.destination] }, context);
  const needed = new Set(standalone.map(objectId));
  const isNeeded = (object: K): boolean => needed.has(objectId(object));
  const [ins, own] = [skeleton.filter(isWayIn), row.filter(isNeeded)];
  return unique([...ins, ...own, ...skeleton, ...row]);
}

/** All that was looked for is there. */
function wholeText(
  { fate }: Walk,
  count: number,
  { unknownFlags, isInProcess = false }: { readonly unknownFlags?: string; readonly isInProcess?: boolean },
): string {
  const withFlags = unknownFlags === undefined ? "" : ", as the flags of this command make them";
  if (isInProcess && fate.is !== "pass") return `the proxy's process has all that it needs for this (${count} checked)`;
  return fate.is === "pass"
    ? `Turnout's rules leave it alone, as they should${withFlags} (${count} checked)`
    : `Turnout's rules for this are in the kernel, complete${withFlags} (${count} checked)`;
}

/** What differs may be explained by flags, or may not. */
function unconfirmedText({ id, says }: Cause): string {
  if (id !== "other_flags") return `with the flags of this command: ${says}`;
  return "the rules are not those that the flags of this command make, so give it the proxy's (--config, --node-name, --cluster-cidr, --service-metrics, --backend-option and so on)";
}

function differenceText({ id, says }: Cause): string {
  if (id === "two_proxies") return "Turnout's rules in the kernel are not this proxy's: they were made with other flags";
  if (id === "other_flags") return OTHER_FLAGS;
  return `Turnout's rules for this are not in the kernel as they should be: ${says}`;
}

/** The proxy knows its own flags, so rules of other flags are somebody else's. */
function ofAnotherProxy({ show = [], ...cause }: Cause): Cause {
  return {
    ...cause,
    id: "two_proxies",
    says: "the rules in the kernel are whole, and made with other flags than this proxy has: another Turnout writes here too, or one with other flags was here before. So packets go by rules that are not this proxy's",
    show: [...show, "turnout doctor"],
    fix: "see that only one proxy runs here (turnout doctor names the processes); where no other one does, restart this one, which puts its own rules in their place",
  };
}

/** Rules of another proxy in this dataplane, by which packets go as well. */
async function lookForOthers<H, K extends KernelObject, S>({ backend }: PacketQuestion<H, K, S>, signal: AbortSignal): Promise<Survey> {
  const found = (await backend.family.leftovers?.(true, signal)) ?? [];
  const live = found.filter(({ isLive }) => isLive !== false).map(({ what }) => what);
  if (live.length === 0) return NOTHING;
  const says = `another service proxy has rules in force on this node: ${live.join(", ")}`;
  const fix = "see that only one proxy runs here, then restart this one: it removes what others left (unless told --keep-other-rules)";
  return { steps: [], causes: [{ id: "two_proxies", says, show: ["turnout doctor"], fix }], unseen: [] };
}

async function observed<K extends KernelObject>(
  family: Backend<unknown, K, unknown>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, K>> {
  return (await family.observe(signal))?.objects ?? new Map<string, K>();
}

/** What the proxy renders these rows with. */
function contextOf<H>({ node, rows }: ExplainedState, { host }: { readonly host: H }): Context<H> {
  return { node, host, hasManyEndpoints: haveManyEndpoints(rows) };
}

function unique<K extends KernelObject>(objects: readonly K[]): readonly K[] {
  return [...new Map(objects.map((object) => [objectId(object), object])).values()];
}

/**
 * What the kernel would hold if a Service had the address and port that none has: rendered of a Service without endpoints, less what rows want
 * that are there.
 */
function staleObjects<H, K extends KernelObject, S>(
  { destination, port, protocol, family }: AskedPacket,
  state: ExplainedState,
  backend: PacketQuestion<H, K, S>["backend"],
): readonly K[] {
  const { rows, hostAddresses } = state;
  const context = contextOf(state, backend);
  const rules = [{ from: "anyone", to: "reject", masquerade: false }] as const;
  const gone: ServicePort = {
    key: `//${protocol}`,
    name: { namespace: "", name: "", port: "", protocol },
    family,
    createdMs: 0,
    endpoints: [],
    cluster: [],
    local: [],
    topology: "",
    destinations: [
      { kind: "clusterIP", address: destination, port, rules },
      ...(hostAddresses.includes(destination) ? [{ kind: "nodePort", address: "", port, rules } as const] : []),
    ],
    affinitySeconds: undefined,
    internalLocal: false,
    externalLocal: false,
    healthCheck: undefined,
  };
  // A node port that does not answer on this address is some row's.
  const neighbours = [...rows].filter((row) =>
    row.destinations.some((one) => one.address === destination || (one.kind === "nodePort" && one.port === port)),
  );
  const known = [...backend.family.skeleton(context), ...neighbours.flatMap((row) => backend.family.render(row, context))];
  const ids = new Set(known.map(objectId));
  return backend.family.render(gone, context).filter((object) => !ids.has(objectId(object)) && backend.family.isShared?.(object) !== true);
}
