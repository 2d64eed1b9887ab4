import { ProxyError } from "@turnout/core/backend";
import type { Leftover } from "@turnout/core/backend";
import { findIptables, IptablesTool, SectionRestore, unseenVariants } from "@turnout/host/iptables";
import { isMarked, placeOf, rulesOf, withoutOtherModes } from "@turnout/host/iptables/text";
import type { JumpsObject, TableName } from "@turnout/host/iptables/text";
import type { IpvsListing, IpvsOperation } from "@turnout/host/ipvs/model";
import { Applier } from "./apply.ts";
import { lookAtWhatIsLeft, NO_RULES, NOTHING, unlessMissing } from "./host-look.ts";
import type { HostParts } from "./host-look.ts";
import { FORMER_JUMPS, JUMPS } from "./layout.ts";
import { DEVICE } from "./names.ts";
import { readKey, serviceKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import { readLook } from "./observe.ts";
import type { Look } from "./observe.ts";
import { planDelta, virtualOf } from "./plan.ts";

/** How often connections are counted that keep leftovers in force. */
const LEAVE_POLL_MS = 5_000;
const STAYING = "virtual servers of ipvs stay: connections go on";

/** Chains of ours in one variant of iptables. */
interface VariantRules {
  readonly tool: IptablesTool;
  readonly objects: readonly IpvsObject[];
}

/** All of ours that is on the host. */
interface Left {
  readonly rules: readonly VariantRules[];
  /** All but the rules. */
  readonly objects: readonly IpvsObject[];
  readonly lingering: readonly IpvsObject[];
  /** The keys of virtual servers through which connections go on. */
  readonly busy: ReadonlySet<string>;
  readonly listing: Look["listing"];
}

/** What the variants of iptables have of ours, and why nobody can tell of some. */
interface Saved {
  readonly all: readonly { readonly tool: IptablesTool; readonly saved: Look["saved"] }[];
  readonly unseen: readonly ProxyError[];
}

/** Whether we, and no kube-proxy, wrote the rules last. */
function isOurs(all: readonly { readonly saved: Look["saved"] }[]): boolean {
  return all.some(({ saved }) => isMarked(saved.nat));
}

/** Takes one family's state off the host, whoever left it: this backend, or kube-proxy in ipvs mode. In both variants of iptables. */
export class Leaver {
  readonly #parts: HostParts;
  readonly #tool: IptablesTool;

  /** @param tool of the variant in use */
  constructor(parts: HostParts, tool: IptablesTool) {
    this.#parts = parts;
    this.#tool = tool;
  }

  /**
   * Remove all of ours at once: connections through IPVS end. What a kube-proxy in ipvs mode has written since is its own, and stays: it may be running.
   *
   * Edges: the rules say whose all the rest is, so without any of them nothing is removed where rules can't be seen.
   * @throws {ProxyError} why nobody can tell whether rules are left.
   */
  async removeAll(signal: AbortSignal): Promise<void> {
    const { all, unseen } = await this.#saved(signal);
    if (all.length > 0 && !isOurs(all)) {
      const { family, world } = this.#parts;
      world.log.info("virtual servers are kube-proxy's and stay", { family, hint: "kube-proxy --cleanup removes them" });
    } else if (all.length > 0 || unseen.length === 0) await this.#removeAll(await this.#left(signal), signal);
    if (unseen[0] !== undefined) throw unseen[0];
  }

  /**
   * Find what is left.
   *
   * Edges: where neither the device nor a chain says that we were there, IPVS and ipset aren't asked: that would load kernel modules.
   */
  async leftovers(signal: AbortSignal): Promise<readonly Leftover[]> {
    const isBound = (await this.#parts.addresses.list()).length > 0;
    const { all, unseen } = await this.#saved(signal);
    const hidden = unseen.map(unseenRules);
    if (!isBound && all.length === 0) return hidden;
    const { objects } = await this.#left(signal);
    const count = objects.filter(({ kind }) => kind === "service").length;
    const what = `${count} virtual server${count === 1 ? "" : "s"} of ipvs, and the addresses on ${DEVICE}`;
    const left: Leftover = {
      what,
      by: isOurs(all) ? "turnout" : "kube-proxy",
      remove: (stop, mayWait = true) => this.#leave(stop, mayWait),
    };
    return [left, ...hidden];
  }

  /** Remove what has no connections; the rest when they have ended, or when their time is up. */
  async #leave(signal: AbortSignal, mayWait: boolean): Promise<void> {
    const { world, family, options } = this.#parts;
    const untilMs = world.clock.nowMs() + options.drainSeconds * 1000;
    let isReported = false;
    for (;;) {
      const left = await this.#left(signal);
      if (left.busy.size === 0 || world.clock.nowMs() >= untilMs) return await this.#removeAll(left, signal);
      await this.#takeNoMore(left, signal);
      const together = (objects: readonly IpvsObject[]): readonly IpvsObject[] => removedTogether(objects, left.busy);
      const rules = left.rules.map(({ tool, objects }) => ({ tool, objects: together(objects) }));
      await this.#remove({ rules, objects: together(left.objects), lingering: [] }, signal);
      if (!mayWait) throw new ProxyError("already_exists", STAYING, { object: `${left.busy.size} with connections` });
      if (!isReported) {
        const fields = { family, virtualServers: left.busy.size, seconds: options.drainSeconds };
        world.log.info("connections through IPVS go on until they end; their virtual servers stay for so long", fields);
      }
      isReported = true;
      await world.clock.sleep(LEAVE_POLL_MS, signal);
      if (signal.aborted) throw new ProxyError("canceled", STAYING, { cause: signal.reason });
    }
  }

  /** Virtual servers that stay for their connections get no new ones: a Service that is deleted meanwhile would be served for ever. */
  async #takeNoMore({ listing, busy }: Left, signal: AbortSignal): Promise<void> {
    const staying = listing.virtualServers.filter((server) => busy.has(serviceKey(server)));
    const changes = staying.flatMap(({ realServers, family, protocol, address, port }) =>
      realServers
        .filter(({ weight }) => weight > 0)
        .map((server): IpvsOperation => ({
          verb: "edit-server",
          service: { family, protocol, address, port },
          server: { address: server.address, port: server.port, weight: 0 },
        })),
    );
    // One that went meanwhile is no fault.
    await this.#parts.world.ipvs.change(changes, signal);
  }

  async #left(signal: AbortSignal): Promise<Left> {
    const { family, options } = this.#parts;
    const look = await lookAtWhatIsLeft(this.#parts, signal);
    const { objects, lingering } = readLook(look, family, options);
    const own = new Set([...objects.values()].flatMap(({ kind, key }) => (kind === "service" ? [key] : [])));
    return {
      rules: (await this.#saved(signal)).all.map(({ tool, saved }) => ({
        tool,
        objects: stillOurs(readLook({ ...NOTHING, saved }, family, options).objects.values()),
      })),
      objects: [...objects.values()],
      lingering,
      busy: new Set([...busyServices(look.listing)].filter((key) => own.has(key))),
      listing: look.listing,
    };
  }

  /**
   * What each variant has that has chains of ours; the one with the filter of host ports first.
   *
   * Edges: tables that aren't there are not made for the looking; without a kernel for it nothing was made with it. A variant that can't be listed
   * hides no other.
   */
  async #saved(signal: AbortSignal): Promise<Saved> {
    const { world, family } = this.#parts;
    const { programs } = await findIptables(world.exec, signal);
    const unseen = [...(await unseenVariants(world.netlink, family, programs))];
    const all = await Promise.all(
      programs.map(async (program) => {
        const tool = new IptablesTool(world, family, program);
        try {
          return { tool, saved: { ...NO_RULES, ...(await unlessMissing(() => tool.saveExisting(signal), {})) } };
        } catch (error) {
          if (!ProxyError.is(error) || error.code === "canceled") throw error;
          unseen.push(error);
          return { tool, saved: NO_RULES };
        }
      }),
    );
    const own = all.filter(({ saved }) => hasOwnChains(saved));
    return { all: own.toSorted((one, other) => Number(hasPortFilter(other.saved)) - Number(hasPortFilter(one.saved))), unseen };
  }

  async #removeAll({ rules, objects, lingering }: Left, signal: AbortSignal): Promise<void> {
    await this.#remove({ rules, objects, lingering }, signal);
    await this.#parts.addresses.removeAll(signal);
  }

  /** The rules of one variant go with everything else, in the order of a plan; those of another one, which seldom are there, before. */
  async #remove({ rules, objects, lingering }: Pick<Left, "rules" | "objects" | "lingering">, signal: AbortSignal): Promise<void> {
    for (const one of rules.slice(1)) await this.#apply(one.tool, one.objects, [], signal);
    const [main = { tool: this.#tool, objects: [] }] = rules;
    await this.#apply(main.tool, [...main.objects, ...objects], lingering, signal);
  }

  async #apply(tool: IptablesTool, remove: readonly IpvsObject[], lingering: readonly IpvsObject[], signal: AbortSignal): Promise<void> {
    const { world, family, sets, addresses } = this.#parts;
    const applier = new Applier({ world, family, sets, rules: new SectionRestore(tool, world.log), addresses, drainMs: 0 });
    const due = lingering.map((object) => ({ object, sinceMs: 0 }));
    const plan = planDelta({ put: [], remove, lingering: due, nowMs: world.clock.nowMs() });
    const { failed, lingering: left = [] } = await applier.apply(plan, signal);
    for (const error of failed?.values() ?? []) throw error;
    if (left.length > 0) throw await tool.leftChains(left, signal);
  }
}

function unseenRules(unseen: ProxyError): Leftover {
  return { what: "rules of ipvs in iptables", isLive: false, unseen, remove: () => Promise.reject(unseen) };
}

/** Jumps whose words another mode of kube-proxy uses, too. */
const OF_SEVERAL_MODES: ReadonlySet<string> = new Set(["KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-FORWARD"]);

function isOwnJump(table: TableName, rule: string): boolean {
  return [...JUMPS, ...FORMER_JUMPS].some((jump) => jump.table === table && jump.text === rule && !OF_SEVERAL_MODES.has(jump.to));
}

/** Say what of all this is still ours, where chains of the same names may serve another mode by now. */
function stillOurs(objects: Iterable<IpvsObject>): readonly IpvsObject[] {
  return withoutOtherModes([...objects], { looksIntoSets: true, isOwnJump });
}

/** Tell whether tables hold a chain that only this mode has, in what `iptables-save` printed. */
function hasOwnChains(saved: Look["saved"]): boolean {
  return Object.values(saved).some((text) => /^:(?:KUBE-IPVS-FILTER|KUBE-IPVS-OUT-FILTER|KUBE-LOAD-BALANCER|TURNOUT-LOCAL) /m.test(text));
}

/** Tell whether tables hold the chain that keeps the host's own ports from being reached through service addresses. */
function hasPortFilter({ filter }: Look["saved"]): boolean {
  return /^:KUBE-IPVS-FILTER /m.test(filter);
}

/** The keys of virtual servers through which TCP connections go on. */
function busyServices({ virtualServers }: IpvsListing): ReadonlySet<string> {
  const busy = virtualServers.filter(
    ({ protocol, realServers }) =>
      protocol === "TCP" && realServers.some(({ activeConnections, inactiveConnections }) => activeConnections + inactiveConnections > 0),
  );
  return new Set(busy.map(serviceKey));
}

/** What keeps the host's own ports from being reached through the addresses that stay. It also says that not all is gone. */
const KEPT_CHAINS: ReadonlySet<string> = new Set(["filter KUBE-IPVS-FILTER", "filter TURNOUT-LOCAL-ONLY"]);

/**
 * Say what can go while connections through some virtual servers go on: all but those, their real servers and addresses, the sets, which say that
 * they are ours, and the filter of host ports.
 */
function removedTogether(objects: readonly IpvsObject[], busy: ReadonlySet<string>): readonly IpvsObject[] {
  if (busy.size === 0) return objects;
  const addresses = new Set([...busy].map((key) => readKey(key).address));
  return objects.flatMap((object): readonly IpvsObject[] => {
    if (object.kind === "jumps") return withoutKept(object);
    return isKept(object, busy, addresses) ? [] : [object];
  });
}

function isKept(object: Exclude<IpvsObject, JumpsObject>, busy: ReadonlySet<string>, addresses: ReadonlySet<string>): boolean {
  switch (object.kind) {
    case "set":
    case "entry":
      return true;
    case "service":
      return busy.has(object.key);
    case "server":
      return busy.has(virtualOf(object));
    case "address":
      return addresses.has(object.key);
    case "chain":
      return KEPT_CHAINS.has(object.key);
    default:
      return false;
  }
}

/** Jumps without those into chains that stay. */
function withoutKept(object: JumpsObject): readonly JumpsObject[] {
  const { table } = placeOf(object);
  const going = rulesOf(object.value).filter((rule) => !KEPT_CHAINS.has(`${table} ${/ -j (\S+)$/.exec(rule)?.[1] ?? ""}`));
  return going.length === 0 ? [] : [{ ...object, value: going.join("\n") }];
}
