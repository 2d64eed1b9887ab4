// Calls of BPF that fail when they are told to, each at a change of the kernel.
import type { Fault } from "@turnout/conformance";
import { ProxyError } from "@turnout/core/backend";
import { replacing } from "@turnout/core/testing";
import { elementError } from "@turnout/host/bpf";
import type { Bpf, BpfHandle, BpfLink, BpfMap, Elements, LoadedObject } from "@turnout/host/bpf";
import { addressesIn, groupOf } from "./map-elements.ts";

/** Says how changes fail. */
export interface Failures {
  /** How the change that comes now fails; undefined: it succeeds. */
  next(named: readonly string[]): Fault["when"] | undefined;
  /** Whether a change is refused that names these addresses. */
  isRefused(named: readonly string[]): boolean;
  /** Called at a change that fails, once as much of it was done as is done. */
  failed?(): void;
  /** Called after a change of so many elements, pins and links. */
  changed?(count: number): void;
}

/** Negative error numbers. @source asm-generic/errno-base.h */
const [INTERRUPTED, NO_MEMORY] = [-4, -12];

/** The same calls, of which the changes fail as they are told: loads, elements, attachments, pins and their removal. Of many elements half are changed. */
export function failingBpf(bpf: Bpf, failures: Failures): Bpf {
  const change = <T>(what: string, work: () => T, named: readonly string[] = []): T => {
    const when = failures.next(named);
    if (when === "before" || when === "during") throw fail(`${what} fails (ENOMEM)`);
    const result = work();
    failures.changed?.(1);
    if (when === "after") throw fail(`${what} was done, and its answer is lost`);
    return result;
  };
  const fail = (what: string): ProxyError => {
    failures.failed?.();
    return new ProxyError("tool_failed", what);
  };
  const pinning = (handle: BpfHandle): Pick<BpfHandle, "pin"> => ({
    pin: (path, mode) => change(`pinning ${handle.label}`, () => handle.pin(path, mode)),
  });
  const linkOf = (link: BpfLink): BpfLink =>
    replacing(link, {
      ...pinning(link),
      update: (program) => change(`giving ${link.label} another program`, () => link.update(program)),
      detach: () => change(`detaching ${link.label}`, () => link.detach()),
    });
  const mapOf = (map: BpfMap): BpfMap => replacing(map, { ...pinning(map), ...elementsOf(map, { failures, change, fail }) });
  const objectOf = (object: LoadedObject): LoadedObject => {
    const programs = new Map([...object.programs].map(([name, program]) => [name, replacing(program, pinning(program))]));
    return replacing(object, { programs, program: (name) => programs.get(name) ?? object.program(name) });
  };
  return replacing(bpf, {
    async load(path, options) {
      const when = failures.next([]);
      if (when === "before" || when === "during") throw fail(`loading ${path} fails (ENOMEM)`);
      const object = await bpf.load(path, options);
      failures.changed?.(1);
      if (when === "after") throw fail(`${path} was loaded, and the answer is lost`);
      return objectOf(object);
    },
    openMap: (where) => mapOf(bpf.openMap(where)),
    openLink: (pin) => linkOf(bpf.openLink(pin)),
    attachToCgroup: (program, cgroup, hook) =>
      linkOf(change(`attaching ${program.label}`, () => bpf.attachToCgroup(program, cgroup, hook))),
    attachTc(program, place, name) {
      const attachment = change(`attaching ${program.label}`, () => bpf.attachTc(program, place, name));
      return attachment.kind === "tcx" ? { kind: "tcx", link: linkOf(attachment.link) } : attachment;
    },
    removePins: (folder) => change(`removing ${folder}`, () => bpf.removePins(folder)),
  });
}

/** What changes need. */
interface Changes {
  readonly failures: Failures;
  readonly change: <T>(what: string, work: () => T, named?: readonly string[]) => T;
  readonly fail: (what: string) => ProxyError;
}

function elementsOf(map: BpfMap, { failures, change, fail }: Changes): Pick<BpfMap, "update" | "delete" | "updateMany" | "deleteMany"> {
  const { keySize } = map.info;
  const named = (key: Uint8Array, value: Uint8Array): readonly string[] => addressesIn(map.info.name, key, value);
  const part = ({ keys, values }: Omit<Elements, "count">, count: number): Elements => ({
    count,
    keys: keys.subarray(0, count * keySize),
    values: values.subarray(0, count * map.valueBytes),
  });
  return {
    update: (key, value, mode) => change(`writing to ${map.label}`, () => map.update(key, value, mode), named(key, value)),
    delete: (key) => change(`deleting from ${map.label}`, () => map.delete(key)),
    async updateMany(elements) {
      const { count, keys, values } = elements;
      const when = count === 0 ? undefined : failures.next([]);
      const end = when === "before" ? 0 : when === "during" ? count >> 1 : count;
      const refused = Array.from({ length: end }, (_, at) => at).find((at) =>
        failures.isRefused(
          named(keys.subarray(at * keySize, (at + 1) * keySize), values.subarray(at * map.valueBytes, (at + 1) * map.valueBytes)),
        ),
      );
      const most = refused ?? end;
      const outcome = most === 0 ? { done: 0, refused: undefined } : await map.updateMany(part(elements, most));
      failures.changed?.(thingsIn(map, keys.subarray(0, most * keySize)));
      if (when === "after") throw fail(`${map.label} was written to, and the answer is lost`);
      if (outcome.refused !== undefined || most === count) return outcome;
      if (refused === undefined) failures.failed?.();
      return { done: most, refused: elementError(map.info, NO_MEMORY) };
    },
    async deleteMany(keys) {
      const count = keys.length / keySize;
      const when = count === 0 ? undefined : failures.next([]);
      const end = when === "before" ? 0 : when === "during" ? count >> 1 : count;
      const deleted = end === 0 ? 0 : await map.deleteMany(Buffer.from(keys.subarray(0, end * keySize)));
      failures.changed?.(thingsIn(map, keys.subarray(0, end * keySize)));
      if (when === undefined) return deleted;
      failures.failed?.();
      throw elementError(map.info, INTERRUPTED);
    },
  };
}

/** How many things there are among elements: what is a part of something is counted once with it. */
function thingsIn({ info: { name, keySize } }: BpfMap, keys: Buffer): number {
  const all = Array.from({ length: keys.length / keySize }, (_, at) => keys.subarray(at * keySize, (at + 1) * keySize));
  return new Set(all.map((key) => groupOf(name, key) ?? key.toString("hex"))).size;
}
