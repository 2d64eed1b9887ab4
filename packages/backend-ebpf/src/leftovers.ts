import { join } from "node:path";
import { familyOf } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Leftover } from "@turnout/core/backend";
import type { BpfMap } from "@turnout/host/bpf";
import { decodeAddress, STRUCTS } from "./bytes/layout.ts";
import { hasOurLayout, servingMark } from "./names.ts";
import type { PinnedMaps, PinWorld } from "./pins/pinned-maps.ts";

/** What one folder's map of services holds, by the keys. */
interface ServiceKeys {
  readonly own: readonly Buffer[];
  readonly others: number;
}

/**
 * Find what this backend left in force when another one serves a family.
 *
 * Edges: programs serve both families, so one family's services go first, and everything with those of the last.
 * @throws {ProxyError} what looking failed with.
 */
export async function leaveFamily(
  family: IPFamily,
  pinned: PinnedMaps,
  world: Pick<PinWorld, "bpf" | "pinFiles">,
  removeAll: (signal: AbortSignal) => Promise<void>,
): Promise<readonly Leftover[]> {
  const { root } = pinned;
  if (root === undefined || !world.pinFiles.exists(root)) return [];
  const { own, others } = await servicesOf(family, root, world);
  if (own === 0 && others > 0) return [];
  const remove = async (signal: AbortSignal): Promise<void> => {
    await removeServices(family, root, world);
    if ((await servicesOf(family, root, world)).others === 0) await removeAll(signal);
  };
  return [{ what: `${own} destinations of services, by eBPF`, by: "turnout", remove }];
}

async function removeServices(family: IPFamily, root: string, world: Pick<PinWorld, "bpf" | "pinFiles">): Promise<void> {
  world.bpf.removePins(join(root, servingMark(family)));
  for (const map of serviceMaps(root, world)) {
    try {
      const { own } = await keysIn(map, family);
      await map.deleteMany(Buffer.concat(own));
    } finally {
      map.close();
    }
  }
}

async function servicesOf(
  family: IPFamily,
  root: string,
  world: Pick<PinWorld, "bpf" | "pinFiles">,
): Promise<{ readonly own: number; readonly others: number }> {
  const sum = { own: 0, others: 0 };
  for (const map of serviceMaps(root, world)) {
    try {
      const { own, others } = await keysIn(map, family);
      sum.own += own.length;
      sum.others += others;
    } finally {
      map.close();
    }
  }
  return sum;
}

/** The maps of services that can be read: those of this layout, of any size. Others go with the rest. */
function* serviceMaps(root: string, { bpf, pinFiles }: Pick<PinWorld, "bpf" | "pinFiles">): Generator<BpfMap> {
  for (const folder of pinFiles.folders(root).filter(hasOurLayout)) {
    try {
      yield bpf.openMap({ pin: join(root, folder, "services") });
    } catch (error) {
      if (!ProxyError.is(error, "not_found")) throw error;
    }
  }
}

async function keysIn(map: BpfMap, family: IPFamily): Promise<ServiceKeys> {
  const own: Buffer[] = [];
  let others = 0;
  const { bytes, fields } = STRUCTS.destination;
  for await (const { count, keys } of map.read()) {
    for (let index = 0; index < count; index += 1) {
      const key = keys.subarray(index * bytes, (index + 1) * bytes);
      if (familyOf(decodeAddress(key.subarray(0, fields.address[1]))) === family) own.push(key);
      else others += 1;
    }
  }
  return { own, others };
}
