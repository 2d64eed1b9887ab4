import { hostViewOf } from "@turnout/client/sockets";
import type { Fronts, ListenerObject, Traffic } from "@turnout/client/sockets";
import { hostPort, objectId } from "@turnout/core/backend";
import type { IPFamily, Lingering, Observed, Outcome, Plan, ProxyError } from "@turnout/core/backend";
import type { OwnAddresses } from "@turnout/host";
import type { AddressObject, UserspaceObject } from "./objects.ts";
import { OWN_DEVICE } from "./objects.ts";
import type { MapEntry } from "./options.ts";
import type { Step } from "./plan.ts";

/** How often what lingers is looked at. */
const REVISIT_MS = 2_000;
/** How often it is looked whether all connections have ended, when the process ends. */
const DRAIN_POLL_MS = 100;

/** Brings objects into force in this process: sockets, and addresses for them. */
export class Applier {
  readonly #traffic: Traffic;
  readonly #fronts: Fronts;
  readonly #own: OwnAddresses;
  readonly #map: readonly MapEntry[];
  /** What is in force, addresses aside: those are on the host. */
  readonly #active = new Map<string, UserspaceObject>();
  /** Addresses of ours that should be there; undefined: there never were any. */
  #expected: Set<string> | undefined;
  #isApplying = false;
  #hasLookedAtMap = false;

  constructor(traffic: Traffic, fronts: Fronts, own: OwnAddresses, map: readonly MapEntry[]) {
    this.#map = map;
    this.#traffic = traffic;
    this.#fronts = fronts;
    this.#own = own;
  }

  /** Carry a plan out. What can't be opened is in `failed`, the rest is in force. @throws {ProxyError} when addresses can't be changed. */
  async apply(plan: Plan<Step>, signal: AbortSignal): Promise<Outcome<UserspaceObject>> {
    this.#isApplying = true;
    try {
      return await this.#carryOut(plan, signal);
    } finally {
      this.#isApplying = false;
    }
  }

  async #carryOut({ steps }: Plan<Step>, signal: AbortSignal): Promise<Outcome<UserspaceObject>> {
    const added = steps.flatMap((step) => (step.do === "put" && step.object.kind === "address" ? [step.object.key] : []));
    this.#expect(added);
    await this.#own.add(added, signal);
    const failed = new Map<string, ProxyError>();
    const lingering: Lingering<UserspaceObject>[] = [];
    const gone: string[] = [];
    for (const step of steps) {
      const { object } = step;
      if (step.do === "put") await this.#put(object, failed);
      else {
        if (step.do === "remove") await this.#remove(object);
        if (this.#isBusy(object)) lingering.push({ object, afterMs: REVISIT_MS });
        else if (object.kind === "address") gone.push(object.key);
      }
    }
    this.#warnOfUnusedMaps(steps);
    this.#fronts.retainAffinity(rowsOf(steps));
    for (const ip of gone) this.#expected?.delete(ip);
    await this.#own.remove(gone, signal);
    return { failed, lingering };
  }

  /** What is in force: of addresses what the host says. What only old connections use lingers. */
  async observe(): Promise<Observed<UserspaceObject>> {
    const objects = new Map(this.#active);
    const lingering: UserspaceObject[] = this.#fronts.draining().filter((object) => !this.#active.has(objectId(object)));
    const inUse = new Set([...this.#active.values()].flatMap((object) => (isListener(object) ? [object.value.ip] : [])));
    const ips = await this.#own.list();
    this.#expect(ips);
    for (const ip of ips) {
      const object: AddressObject = { kind: "address", key: ip, value: { device: OWN_DEVICE } };
      if (!inUse.has(ip) && this.#fronts.isAddressInUse(ip)) lingering.push(object);
      else objects.set(objectId(object), object);
    }
    return { objects, lingering };
  }

  /** Whether an address of ours is missing, or there is one too many; while changes are under way nobody can tell. */
  async isDisturbed(): Promise<boolean> {
    if (this.#isApplying || this.#expected === undefined) return false;
    const there = await this.#own.list();
    return !this.#isApplying && (there.length !== this.#expected.size || there.some((ip) => this.#expected?.has(ip) !== true));
  }

  /** Take note that something is no longer in force. */
  lose(id: string): void {
    this.#active.delete(id);
  }

  /** Answer nobody any more, wait until `signal` aborts for what is open, and leave nothing behind. */
  async close(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#traffic.world;
    this.#fronts.closeAll();
    this.#active.clear();
    const open = this.#fronts.connections;
    if (open > 0) log.info("waiting for connections to end", { family: this.#traffic.family, connections: open });
    while (this.#fronts.connections > 0 && !signal.aborted) await clock.sleep(DRAIN_POLL_MS, signal);
    const left = this.#fronts.connections;
    if (left > 0) log.warn("connections were cut", { family: this.#traffic.family, connections: left });
    this.#fronts.cutAll();
    // Not with the signal that may have aborted: the addresses have to go.
    if (this.#expected !== undefined) await this.#own.removeAll(new AbortController().signal);
    this.#expected = undefined;
  }

  /** The first plan has all there is: what a map names by then may be mistyped, or come later. */
  #warnOfUnusedMaps(steps: readonly Step[]): void {
    if (this.#hasLookedAtMap) return;
    this.#hasLookedAtMap = true;
    const { family, world } = this.#traffic;
    for (const { target } of unusedMaps(this.#map, family, steps))
      world.log.warn("a map names no service port there is", { map: target, hint: "turnout print shows the service ports of a source" });
  }

  #expect(ips: readonly string[]): void {
    if (ips.length > 0) this.#expected = new Set([...(this.#expected ?? []), ...ips]);
  }

  async #put(object: UserspaceObject, failed: Map<string, ProxyError>): Promise<void> {
    const id = objectId(object);
    switch (object.kind) {
      case "address":
        return;
      case "host":
        this.#traffic.host = hostViewOf(object.value);
        break;
      case "left-out":
        this.#traffic.world.log.warn(`left out: ${object.value.addresses.join(", ")}`, {
          object: `Service port ${object.key}`,
          hint: object.value.why,
        });
        break;
      case "listener":
      case "node-port": {
        const error = await this.#fronts.put(object);
        if (error !== undefined) {
          // What is there now may be neither: it has to be put again, also in its old form.
          this.#active.delete(id);
          failed.set(id, error);
          return;
        }
      }
    }
    this.#active.set(id, object);
  }

  async #remove(object: UserspaceObject): Promise<void> {
    this.#active.delete(objectId(object));
    if (isListener(object)) await this.#fronts.remove(object);
  }

  #isBusy(object: UserspaceObject): boolean {
    if (object.kind === "address") return this.#fronts.isAddressInUse(object.key);
    return isListener(object) && !this.#fronts.isDrained(object.key);
  }
}

function isListener(object: UserspaceObject): object is ListenerObject {
  return object.kind === "listener" || object.kind === "node-port";
}

/** Maps of a family that no listener of a plan is at. Pure. */
function unusedMaps(map: readonly MapEntry[], family: IPFamily, steps: readonly Step[]): readonly MapEntry[] {
  const at = new Set(steps.flatMap(({ object }) => (object.kind === "listener" ? [hostPort(object.value.ip, object.value.port)] : [])));
  return map.filter(({ local }) => local.family === family && !at.has(hostPort(local.ip, local.port)));
}

/** Rows whose clients may have been sent to endpoints that are gone now. */
function rowsOf(steps: readonly Step[]): ReadonlySet<string> {
  return new Set(
    steps.flatMap((step) => {
      const objects = step.do === "put" ? [step.object, ...(step.before === undefined ? [] : [step.before])] : [step.object];
      return objects.flatMap((object) => (isListener(object) && object.value.affinitySeconds !== undefined ? [object.value.row] : []));
    }),
  );
}
