import { placeOf, rulesOf, withoutOtherModes } from "@turnout/host/iptables/text";
import type { JumpsObject, TableName } from "@turnout/host/iptables/text";
import type { IpvsListing } from "@turnout/host/ipvs/model";
import { FORMER_JUMPS, JUMPS } from "./layout.ts";
import { readKey, serviceKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import type { Look } from "./observe.ts";
import { virtualOf } from "./plan.ts";

/** Jumps whose words another mode of kube-proxy uses, too. */
const OF_SEVERAL_MODES: ReadonlySet<string> = new Set(["KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-FORWARD"]);

function isOwnJump(table: TableName, rule: string): boolean {
  return [...JUMPS, ...FORMER_JUMPS].some((jump) => jump.table === table && jump.text === rule && !OF_SEVERAL_MODES.has(jump.to));
}

/** Say what of all this is still ours, where chains of the same names may serve another mode by now. */
export function stillOurs(objects: Iterable<IpvsObject>): readonly IpvsObject[] {
  return withoutOtherModes([...objects], { looksIntoSets: true, isOwnJump });
}

/** Tell whether tables hold a chain that only this mode has, in what `iptables-save` printed. */
export function hasOwnChains(saved: Look["saved"]): boolean {
  return Object.values(saved).some((text) => /^:(?:KUBE-IPVS-FILTER|KUBE-IPVS-OUT-FILTER|KUBE-LOAD-BALANCER|TURNOUT-LOCAL) /m.test(text));
}

/** Tell whether tables hold the chain that keeps the host's own ports from being reached through service addresses. */
export function hasPortFilter({ filter }: Look["saved"]): boolean {
  return /^:KUBE-IPVS-FILTER /m.test(filter);
}

/** The keys of virtual servers through which TCP connections go on. */
export function busyServices({ virtualServers }: IpvsListing): ReadonlySet<string> {
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
export function removedTogether(objects: readonly IpvsObject[], busy: ReadonlySet<string>): readonly IpvsObject[] {
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
