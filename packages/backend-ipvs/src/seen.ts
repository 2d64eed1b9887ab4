import { objectId } from "@turnout/core/backend";
import type { KernelObject, SeenPart } from "@turnout/core/backend";
import type { IptablesTool } from "@turnout/host/iptables";
import { placeOf } from "@turnout/host/iptables/text";
import { partOf, PARTS } from "@turnout/host/ipvs/model";
import { lookAtParts } from "./host-look.ts";
import type { HostParts } from "./host-look.ts";
import { readKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import { readLook } from "./observe.ts";
import { virtualOf } from "./plan.ts";
import { setNameOf } from "./sets.ts";
import type { Touched } from "./fingerprints.ts";
import type { Watches } from "./watches.ts";

/** What seeing takes. */
export interface Sight {
  readonly parts: HostParts;
  readonly tool: Pick<IptablesTool, "save">;
  readonly watches: Pick<Watches, "sinceNow">;
}

/** Look at what was touched, and at nothing else. @throws {ProxyError} what looking fails with. */
export async function seeTouched(touched: Touched, { parts, tool, watches }: Sight, signal: AbortSignal): Promise<SeenPart> {
  const isCurrent = watches.sinceNow();
  const look = await lookAtParts(parts, tool, touched, signal);
  const covers = coverageOf(touched);
  const found = [...readLook(look, parts.family, parts.options).objects.values()].filter(covers);
  return { covers, objects: new Map<string, KernelObject>(found.map((object) => [objectId(object), object])), isCurrent };
}

/** Tell the objects that are in what was touched. Of a set that was emptied the members alone are known. */
function coverageOf({ tables, parts, sets, addresses }: Touched): (object: KernelObject) => boolean {
  const known = new Map<string, boolean>();
  const isInParts = (key: string): boolean => {
    const isIn = known.get(key) ?? parts.has(partOf(readKey(key)));
    known.set(key, isIn);
    return isIn;
  };
  return (object) => {
    const one = object as IpvsObject;
    switch (one.kind) {
      case "service":
        return parts.size === PARTS || (parts.size > 0 && isInParts(one.key));
      case "server":
        return parts.size === PARTS || (parts.size > 0 && isInParts(virtualOf(one)));
      case "address":
        return addresses;
      case "entry":
        return sets.size > 0 && sets.has(setNameOf(one));
      case "set":
        return sets.has(one.key) && sets.get(one.key) !== false;
      case "sysctl":
      case "timeout":
        return false;
      default:
        return tables.has(placeOf(one).table);
    }
  };
}
