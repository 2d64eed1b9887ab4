import { objectId } from "@turnout/core/backend";
import type { BackendMetric, Log, Outcome, Plan } from "@turnout/core/backend";
import type { DeviceFact } from "./devices.ts";
import { deviceKey, placeOf } from "../hooks.ts";
import type { EbpfObject } from "../objects.ts";
import type { Step } from "../plan.ts";

/** Which devices carry programs: told in the log when it changes, and in a metric. */
export class Carriers {
  readonly #log: Pick<Log, "info">;
  /** Names of all devices that were there since it was told last, by their numbers. */
  readonly #names = new Map<number, string>();
  /** Those that are there. */
  #devices: readonly DeviceFact[] = [];
  /** Keys of the objects that are wanted, of those in force, and of those that the host refused to make or to remove. */
  #wanted: ReadonlySet<string> = new Set();
  readonly #active = new Set<string>();
  readonly #refused = new Set<string>();
  /** Names of the devices that were told as carrying; undefined: nothing was told yet. */
  #reported: ReadonlySet<string> | undefined;

  constructor(log: Pick<Log, "info">) {
    this.#log = log;
  }

  /** These devices are there, and such a skeleton is made for them. */
  learn(devices: readonly DeviceFact[], skeleton: readonly EbpfObject[]): void {
    this.#devices = devices;
    for (const { index, name } of devices) this.#names.set(index, name);
    this.#wanted = new Set(skeleton.flatMap(({ kind, key }) => (kind === "device" ? [key] : [])));
  }

  /** This was found on the host. */
  found(objects: Iterable<EbpfObject>): void {
    this.#active.clear();
    for (const object of objects) if (object.kind === "device" && object.value.program !== "") this.#active.add(object.key);
    this.#notify();
  }

  /** A plan was carried out. */
  applied({ steps }: Plan<Step>, { failed, deferred }: Outcome<EbpfObject>): void {
    for (const { verb, object } of steps) {
      if (object.kind !== "device" || deferred?.has(objectId(object)) === true) continue;
      const isRefused = failed?.has(objectId(object)) === true;
      this.#refused[isRefused ? "add" : "delete"](object.key);
      if (isRefused) continue;
      if (verb === "write") this.#active.add(object.key);
      else this.#active.delete(object.key);
    }
    this.#notify();
  }

  /** Keys of the sides of devices that carry programs. */
  get active(): Iterable<string> {
    return this.#active;
  }

  /** Name a device; one that is not known any more by its number. */
  nameOf(ifindex: number): string {
    return this.#names.get(ifindex) ?? `device ${ifindex}`;
  }

  /** Tell whether a device is there and is to carry no program; false where nothing is known of it. */
  isWithout(name: string): boolean {
    const device = this.#devices.find((one) => one.name === name);
    return device !== undefined && !this.#wanted.has(deviceKey({ ifindex: device.index, direction: "ingress" }));
  }

  /** How many programs there are at each device. */
  metrics(): readonly BackendMetric[] {
    return this.#devices.map(({ index, name }) => ({
      name: "turnout_ebpf_device_programs",
      help: "Programs for packets at a device: 2 where it carries them, one for each way",
      kind: "gauge",
      labels: { device: name },
      value: (["ingress", "egress"] as const).filter((direction) => this.#active.has(deviceKey({ ifindex: index, direction }))).length,
    }));
  }

  /** What is still to be done will be told with the rest. */
  #notify(): void {
    const isAsWanted = (key: string): boolean => this.#wanted.has(key) === this.#active.has(key);
    if ([...this.#wanted, ...this.#active].some((key) => !isAsWanted(key) && !this.#refused.has(key))) return;
    const carrying = new Set(
      [...this.#active].flatMap((key) => {
        const ifindex = placeOf(key)?.ifindex ?? 0;
        return this.nameOf(ifindex);
      }),
    );
    const reported = this.#reported;
    const [added, removed] = [
      [...carrying].filter((name) => reported?.has(name) !== true),
      [...(reported ?? [])].filter((name) => !carrying.has(name)),
    ];
    if (added.length + removed.length > 0 || (reported === undefined && this.#devices.length > 0)) {
      const without = this.#devices.flatMap(({ name }) => (carrying.has(name) ? [] : [name]));
      if (reported === undefined)
        this.#log.info("devices that carry programs for packets", { devices: listOf(added), without: listOf(without) });
      else this.#log.info("other devices carry programs for packets", { added: listOf(added), removed: listOf(removed) });
    }
    this.#reported = carrying;
    const there = new Set(this.#devices.map(({ index }) => index));
    for (const index of this.#names.keys()) if (!there.has(index)) this.#names.delete(index);
  }
}

function listOf(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.toSorted().join(", ");
}
