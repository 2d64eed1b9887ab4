import type { Bpf, BpfLink, BpfMap, Elements } from "@turnout/host/bpf";

/**
 * Have this process end as by kill -9 at its n-th change of the kernel, just before it; a batch is carried out by half, as when the kernel is in the middle of it.
 *
 * Shape: changes are loads, batches, attachments, new programs of links, and removals of pins.
 */
export function mortalBpf(bpf: Bpf, changes: number): Bpf {
  let left = changes;
  const live = (): boolean => (left -= 1) > 0;
  const die = (): void => void process.kill(process.pid, "SIGKILL");
  const step = <T>(change: () => T): T => {
    if (!live()) die();
    return change();
  };
  const mortalMap = (map: BpfMap): BpfMap =>
    replacing(map, {
      async updateMany(elements: Elements) {
        if (live()) return map.updateMany(elements);
        const count = elements.count >> 1;
        await map.updateMany({
          count,
          keys: elements.keys.subarray(0, count * map.info.keySize),
          values: elements.values.subarray(0, count * map.valueBytes),
        });
        die();
        return new Promise(() => undefined);
      },
      deleteMany: (keys: Buffer) => step(() => map.deleteMany(keys)),
    });
  const mortalLink = (link: BpfLink): BpfLink =>
    replacing(link, {
      update: (program: Parameters<BpfLink["update"]>[0]) => step(() => link.update(program)),
      pin: (path: string, mode?: "new" | "replace") => step(() => link.pin(path, mode)),
    });
  return replacing(bpf, {
    load: (path: string, options?: Parameters<Bpf["load"]>[1]) => step(() => bpf.load(path, options)),
    openMap: (where: Parameters<Bpf["openMap"]>[0]) => mortalMap(bpf.openMap(where)),
    openLink: (pin: string) => mortalLink(bpf.openLink(pin)),
    attachToCgroup: (...args: Parameters<Bpf["attachToCgroup"]>) => mortalLink(step(() => bpf.attachToCgroup(...args))),
    attachTc: (...args: Parameters<Bpf["attachTc"]>) => {
      const attachment = step(() => bpf.attachTc(...args));
      return attachment.kind === "tcx" ? { kind: "tcx", link: mortalLink(attachment.link) } : attachment;
    },
    removePins: (folder: string) => step(() => bpf.removePins(folder)),
  });
}

/** The same thing with some methods replaced; others are called on the original. */
export function replacing<T extends object>(original: T, methods: Partial<T>): T {
  return new Proxy(original, {
    get(_, name): unknown {
      const own = methods[name as keyof T];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(original, name, original);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(original) : value;
    },
  });
}
