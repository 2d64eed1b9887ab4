import type { Delta, Due, Plan, Put } from "@turnout/core/backend";
import { deletionsOf, restoreInput, sectionWriters, writeRules } from "@turnout/host/iptables/text";
import type { ChainObject, Section, SectionWriters } from "@turnout/host/iptables/text";
import { CHAIN_ORDER } from "./layout.ts";
import { readKey } from "./objects.ts";
import { memberNameOf, memberOf } from "./sets.ts";
import type {
  AddressObject,
  EntryObject,
  IpvsObject,
  ServerObject,
  ServiceObject,
  SetObject,
  SysctlObject,
  TimeoutObject,
} from "./objects.ts";

/** A virtual or a real server to bring into force; `isThere`: it is in the kernel already, with other values. */
export interface ServerChange {
  readonly object: ServiceObject | ServerObject;
  readonly isThere: boolean;
}

/** A real server that isn't wanted; `sinceMs`: since when it has been waiting for its connections to end. */
export interface ServerRemoval {
  readonly object: ServerObject;
  readonly sinceMs: number;
}

/** What is done by one tool in one go. */
export type Step =
  | { readonly do: "set"; readonly objects: readonly (SysctlObject | TimeoutObject)[] }
  | { readonly do: "fill"; readonly sets: readonly SetObject[]; readonly entries: readonly EntryObject[] }
  | { readonly do: "restore"; readonly sections: readonly Section[] }
  | { readonly do: "serve"; readonly changes: readonly ServerChange[] }
  | { readonly do: "bind"; readonly addresses: readonly AddressObject[] }
  | { readonly do: "unbind"; readonly addresses: readonly AddressObject[] }
  | { readonly do: "drain"; readonly servers: readonly ServerRemoval[] }
  | { readonly do: "strip"; readonly servers: readonly ServerObject[] }
  | { readonly do: "withdraw"; readonly services: readonly ServiceObject[] }
  | { readonly do: "empty"; readonly entries: readonly EntryObject[]; readonly sets: readonly SetObject[] }
  | { readonly do: "delete"; readonly chains: readonly ChainObject[] };

/**
 * Order a difference so that no packet meets half a service.
 *
 * Shape: what comes: virtual servers without real servers (IPVS refuses), the members of sets, rules, real servers, at last the address. What goes:
 * the address, real servers, rules, members, virtual servers. Only the inner virtual servers of a row are complete before the rules that lead to
 * them, and as long as these are there.
 * What a Service's external policy becomes is decided by one member of TURNOUT-LOCAL or TURNOUT-OWN, or by one rule: what it leads to is there
 * before, and the marks that count without it are right whenever it is not there.
 * Edges: where the rules of another mode of kube-proxy are in force, they translate packets before these get to IPVS: they go when all else is
 * there. The filter comes before the addresses all the same.
 */
export function planDelta({ put, remove, lingering, nowMs }: Delta<IpvsObject>): Plan<Step> {
  const wanted = put.map(({ after }) => after);
  const entries = inOrder(ofKind(wanted, "entry"), COMING);
  const outgoing = inOrder(ofKind(remove, "entry"), COMING.toReversed());
  const changes = put.flatMap(changeOf);
  const isInternal = memberTest(entries);
  const isEarly = ({ object }: ServerChange): boolean => object.kind === "service" || isInternal(virtualOf(object));
  const withdrawn = ofKind(remove, "service");
  const gone = new Set(withdrawn.map(({ key }) => key));
  const isGone = serverTest([...gone]);
  /** Those of a virtual server that stays, in two steps; what goes with one goes after it. */
  const outWhile = (...ranks: readonly Rank[]): readonly EntryObject[] =>
    outgoing.filter((entry) => ranks.includes(rankOf(entry)) && !isGone(entry));
  const [unmarked, decided] = [outWhile("unmarking"), outWhile("own", "local")];
  const outBefore = new Set([...unmarked, ...decided]);
  const servers = [...ofKind(remove, "server").map((object) => ({ object, sinceMs: nowMs })), ...lingering.flatMap(dueServer)];
  const stripped = servers.flatMap(({ object }) => (gone.has(virtualOf(object)) ? [object] : []));
  const wasInternal = memberTest(outgoing);
  const isInner = (object: ServerObject): boolean => wasInternal(virtualOf(object));
  const { coming, going } = sectionsOf(put, remove);
  const isTakeover = put.some(isOtherModes);
  const isLate = ({ table }: Section): boolean => isTakeover && table === "nat";
  const steps: readonly Step[] = [
    { do: "set", objects: [...ofKind(wanted, "sysctl"), ...ofKind(wanted, "timeout")] },
    { do: "fill", sets: ofKind(wanted, "set"), entries: entries.filter(isOfAddress) },
    { do: "serve", changes: servicesFirst(changes.filter(isEarly)) },
    { do: "empty", entries: unmarked, sets: [] },
    { do: "fill", sets: [], entries: entries.filter((entry) => isFirst(rankOf(entry)) && !isOfAddress(entry)) },
    // By themselves: who was to be restricted and isn't is not admitted.
    { do: "fill", sets: [], entries: entries.filter((entry) => rankOf(entry) === "admitting") },
    { do: "restore", sections: coming.filter((section) => !isLate(section)) },
    { do: "fill", sets: [], entries: entries.filter((entry) => isDeciding(rankOf(entry))) },
    { do: "serve", changes: servicesFirst(changes.filter((change) => !isEarly(change))) },
    { do: "bind", addresses: ofKind(wanted, "address") },
    { do: "restore", sections: coming.filter(isLate) },
    { do: "unbind", addresses: ofKind(remove, "address") },
    { do: "drain", servers: servers.filter(({ object }) => !gone.has(virtualOf(object))) },
    { do: "empty", entries: decided, sets: [] },
    { do: "strip", servers: stripped.filter((object) => !isInner(object)) },
    { do: "restore", sections: going },
    { do: "strip", servers: stripped.filter(isInner) },
    { do: "empty", entries: outgoing.filter((entry) => !isOfAddress(entry) && !outBefore.has(entry)), sets: [] },
    { do: "withdraw", services: withdrawn },
    { do: "empty", entries: outgoing.filter(isOfAddress), sets: ofKind(remove, "set") },
    { do: "delete", chains: lingering.flatMap(({ object }) => (object.kind === "chain" ? [object] : [])) },
  ];
  return { steps: steps.filter((step) => !isNothing(step)) };
}

/** What a member decides: nothing by itself, that sources are restricted, that a load-balancer IP is one, which policy counts, or that packets are not masqueraded. */
type Rank = "plain" | "restricting" | "admitting" | "local" | "own" | "unmarking";

/** Members come in this order and go in the reverse one. */
const COMING: readonly Rank[] = ["plain", "restricting", "admitting", "local", "own", "unmarking"];

/** Those that come before rules. */
function isFirst(rank: Rank): boolean {
  return rank === "plain" || rank === "restricting";
}

/** Those that come when the rules are there that they are looked up by. */
function isDeciding(rank: Rank): boolean {
  return !isFirst(rank) && rank !== "admitting";
}

function rankOf({ key }: EntryObject): Rank {
  const [, name = ""] = /^(?:KUBE|TURNOUT)-(?:6-)?(\S+) /.exec(key) ?? [];
  if (name === "LOCAL") return "local";
  if (name === "OWN") return "own";
  if (name === "LOAD-BALANCER-FW") return "restricting";
  if (name === "LOAD-BALANCER") return "admitting";
  return /^(?:LOAD-BALANCER-LOCAL|NODE-PORT-LOCAL)/.test(name) ? "unmarking" : "plain";
}

function inOrder(entries: readonly EntryObject[], ranks: readonly Rank[]): readonly EntryObject[] {
  return ranks.flatMap((rank) => entries.filter((entry) => rankOf(entry) === rank));
}

/** Tell the chain that sends packets on, with rules that look into no set: another mode of kube-proxy wrote them. */
function isOtherModes({ before, after }: Put<IpvsObject>): boolean {
  const value = after.kind === "chain" && after.key === "nat KUBE-SERVICES" ? before?.value : undefined;
  return typeof value === "string" && value.includes("-j ") && !value.includes("--match-set ");
}

/** Virtual servers before their real ones. */
function servicesFirst(changes: readonly ServerChange[]): readonly ServerChange[] {
  return [...changes.filter(({ object }) => object.kind === "service"), ...changes.filter(({ object }) => object.kind === "server")];
}

/** The set of addresses on the device: its members say that virtual servers there are ours. */
function isOfAddress({ key }: EntryObject): boolean {
  return /^KUBE-(?:6-)?IPVS-IPS /.test(key);
}

/** Tell entries whose address and port, or port alone, are those of one of these virtual servers. */
function serverTest(keys: readonly string[]): (entry: EntryObject) => boolean {
  const members = new Set(
    keys.flatMap((key) => {
      const { protocol, port } = readKey(key);
      return [memberOf(key), `${protocol} ${port}`];
    }),
  );
  return ({ key }) => {
    const [name = "", member = ""] = key.split(" ");
    return members.has(name.endsWith("-TCP") || name.endsWith("-UDP") ? `${name.slice(-3)} ${member}` : member);
  };
}

/** Tell the keys of virtual servers that packets are translated to, by the members of TURNOUT-INTERNAL. */
function memberTest(entries: readonly EntryObject[]): (key: string) => boolean {
  const members = new Set(entries.filter(({ key }) => /^TURNOUT-(?:6-)?INTERNAL /.test(key)).map(memberNameOf));
  return (key) => members.size > 0 && members.has(memberOf(key));
}

/** The virtual server that a real one belongs to, by its key. */
export function virtualOf({ key }: Pick<ServerObject, "key">): string {
  return key.slice(0, key.lastIndexOf(" "));
}

/** The plan as text for people, with the tools' own words where they have one. */
export function explainPlan({ steps }: Plan<Step>): string {
  return steps.length === 0 ? "# nothing to do\n" : steps.map(explainStep).join("");
}

function isNothing(step: Step): boolean {
  return Object.values(step).every((value: string | readonly unknown[]) => typeof value === "string" || value.length === 0);
}

function explainStep(step: Step): string {
  switch (step.do) {
    case "set":
      return lines(
        step.objects.map(({ kind, key, value }) => (kind === "sysctl" ? `sysctl -w ${key}=${value}` : `ipvs timeout ${key} ${value}`)),
      );
    case "fill":
      return lines([
        ...step.sets.map(({ key, value }) => `ipset create ${key} ${value}`),
        ...step.entries.map(({ key }) => `ipset add ${key}`),
      ]);
    case "restore":
      return restoreInput(step.sections);
    case "serve":
      return lines(step.changes.map(({ object, isThere }) => `ipvs ${isThere ? "change" : "add"} ${wordsOf(object)}`));
    case "bind":
      return lines(step.addresses.map(({ key }) => `ip address add ${key}`));
    case "unbind":
      return lines(step.addresses.map(({ key }) => `ip address del ${key}`));
    case "drain":
      return lines(step.servers.map(({ object }) => `ipvs drain ${object.key}`));
    case "strip":
      return lines(step.servers.map(({ key }) => `ipvs delete ${key}`));
    case "withdraw":
      return lines(step.services.map(({ key }) => `ipvs delete ${key}`));
    case "empty":
      return lines([...step.entries.map(({ key }) => `ipset del ${key}`), ...step.sets.map(({ key }) => `ipset destroy ${key}`)]);
    case "delete":
      return restoreInput(deletionsOf(step.chains));
  }
}

function wordsOf(object: ServiceObject | ServerObject): string {
  if (object.kind === "server") return `${object.key} weight ${object.value}`;
  const { scheduler, persistentSeconds } = object.value;
  return `${object.key} scheduler ${scheduler}${persistentSeconds === 0 ? "" : ` persistent ${persistentSeconds}`}`;
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join("");
}

function ofKind<Kind extends IpvsObject["kind"]>(
  objects: readonly IpvsObject[],
  kind: Kind,
): readonly Extract<IpvsObject, { kind: Kind }>[] {
  return objects.filter((object): object is Extract<IpvsObject, { kind: Kind }> => object.kind === kind);
}

function changeOf({ before, after, lingering }: Put<IpvsObject>): readonly ServerChange[] {
  const isThere = before !== undefined || lingering !== undefined;
  return after.kind === "service" || after.kind === "server" ? [{ object: after, isThere }] : [];
}

function dueServer({ object, sinceMs }: Due<IpvsObject>): readonly ServerRemoval[] {
  return object.kind === "server" ? [{ object, sinceMs }] : [];
}

/** What changes in iptables: what keeps packets out before what lets them in; and single rules that go, which other rules may need until then. */
function sectionsOf(
  put: readonly Put<IpvsObject>[],
  remove: readonly IpvsObject[],
): { readonly coming: readonly Section[]; readonly going: readonly Section[] } {
  const [coming, going] = [sectionWriters(CHAIN_ORDER), sectionWriters(CHAIN_ORDER)];
  writeRules({ put, remove }, { coming, going });
  return { coming: finished(coming), going: finished(going) };
}

function finished({ filter, mangle, nat }: SectionWriters): readonly Section[] {
  return [filter, mangle, nat].flatMap((writer) => writer.finish());
}
