import { objectId } from "@turnout/core/backend";
import type { Drift, IPFamily, KernelObject, SeenPart } from "@turnout/core/backend";
import type { FingerprintChanges } from "@turnout/host";
import { isObjectIn } from "../pins/contents.ts";
import { isInMap } from "../bytes/elements.ts";
import { placeOf } from "../hooks.ts";
import { lookAtPins } from "../host-look.ts";
import type { LookWorld } from "../host-look.ts";
import type { EbpfObject } from "../objects.ts";
import { readLook } from "../observe.ts";
import type { PacketHost } from "../packets/packet-host.ts";
import type { PinnedMaps } from "../pins/pinned-maps.ts";
import { explainFingerprints, touchedParts } from "./fingerprints.ts";
import type { TouchedParts } from "./fingerprints.ts";
import type { Watches } from "./watches.ts";

/** Kinds of what is pinned beside maps. */
const PINNED: readonly EbpfObject["kind"][] = ["link", "device"];

/** What seeing takes. */
export interface Sight {
  readonly maps: PinnedMaps;
  readonly world: LookWorld;
  readonly byClsact: boolean;
  readonly family: IPFamily;
  /** Whether this family keeps what both share. */
  readonly isKeeper: boolean;
  readonly watches: Pick<Watches, "sinceNow">;
  /** Hears of what was found, and in which parts. */
  readonly onSeen: (objects: readonly EbpfObject[], touched: TouchedParts) => void;
}

/** Look at the table of nft after somebody touched it, and at nothing else. @throws {ProxyError} what listing it fails with. */
export async function seeTable(packets: Pick<PacketHost, "table">, watches: Sight["watches"], signal: AbortSignal): Promise<SeenPart> {
  const isCurrent = watches.sinceNow();
  const table = await packets.table(signal);
  const objects = new Map(table === undefined ? [] : [[objectId(table), table]]);
  return { covers: ({ kind }) => kind === "table", objects, isCurrent };
}

/**
 * Look at the parts of which the signs have changed, and at nothing else; undefined: nothing of this family's was touched.
 *
 * Edges: a program that went with its device is no foreign hand's doing, and the facts tell of it. Where pins of maps or programs came or went,
 * everything has to be compared.
 * @throws {ProxyError} what looking fails with.
 */
export async function seeTouched(changes: FingerprintChanges, sight: Sight): Promise<Drift | undefined> {
  const { maps, world, byClsact, family, isKeeper, watches, onSeen } = sight;
  if (changes.size === 0) return { kind: "drift", what: "more was changed than could be looked at" };
  const isCurrent = watches.sinceNow();
  const devices = new Set((await world.netlink.devices()).map(({ index }) => index));
  const isThere = (key: string): boolean => devices.has(placeOf(key)?.ifindex ?? NaN) || placeOf(key) === undefined;
  const rest = new Map([...changes].filter(([sign]) => isThere(sign.slice(sign.indexOf(" ") + 1))));
  const touched = touchedParts(rest);
  const hasAttached = isKeeper && touched.attached.size > 0;
  if (!touched.hasOtherPins && !hasAttached && touched.maps.size === 0) return undefined;
  const what = explainFingerprints(rest);
  if (touched.hasOtherPins) return { kind: "drift", what };
  const look = { ...(await lookAtPins(maps, world, byClsact, { maps: touched.maps, hasAttached })), table: undefined };
  // Maps are missing, so nothing is what it was.
  if (look.elements === undefined) return { kind: "drift", what };
  const covers = (object: KernelObject): boolean => {
    const one = object as EbpfObject;
    if (isInMap(one)) return isObjectIn(touched.maps, one);
    return hasAttached && PINNED.includes(one.kind) && isThere(one.key);
  };
  const found = [...readLook(look, { family, isKeeper }).objects.values()];
  onSeen(found, { ...touched, attached: hasAttached ? touched.attached : new Set() });
  const seen: SeenPart = { covers, objects: new Map(found.filter(covers).map((object) => [objectId(object), object])), isCurrent };
  return { kind: "drift", what, left: seen };
}
