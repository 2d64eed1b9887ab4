import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { PartlyKnown } from "./rule.ts";

/** Whether an address is one that a rule names: itself, a CIDR, a range `a-b`, or with a mask; undefined for one that isn't known. Pure. */
export function isAddressIn(address: string | undefined, text: string): boolean | undefined {
  if (address === undefined) return undefined;
  const ip = parseIP(address);
  if (ip === undefined) return false;
  const [first = "", last] = text.split("-");
  if (last !== undefined) {
    const [from, to] = [parseIP(first), parseIP(last)];
    return from !== undefined && to !== undefined && from.family === ip.family && from.value <= ip.value && ip.value <= to.value;
  }
  const cidr = parseCIDR(text.includes("/") ? text : `${text}/${ip.family === "IPv4" ? 32 : 128}`);
  return cidr !== undefined && cidrContains(cidr, ip);
}

/** Whether a device is one that a rule names: `eth0`, `cali+` or `cali*`; undefined for one that isn't known. Pure. */
export function isDevice(device: string | undefined, text: string): boolean | undefined {
  if (device === undefined) return undefined;
  return /[+*]$/.test(text) ? device.startsWith(text.slice(0, -1)) : device === text;
}

/** Whether a port is one of a list: `80`, `80:90`, `80-90`, with commas. Pure. */
export function isPortIn(port: number | undefined, text: string): boolean | undefined {
  if (port === undefined) return undefined;
  return text.split(",").some((part) => {
    const [from = "", to = from] = part.split(/[:-]/);
    return Number(from || 0) <= port && port <= Number(to || 65_535);
  });
}

const TEXT_MAX = 400;
/** What a rule does stands at its end. */
const END_MAX = 120;

/** A rule's text, where it is very long with its middle left out. Pure. */
export function clipped(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - END_MAX)} … ${text.slice(-END_MAX)}`;
}

/** The numbers of queues, from one to another; none of a list too long to be looked through. Pure. */
export function queuesOf(first: number, last: number): readonly number[] {
  return last - first < 64 ? Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => first + index) : [];
}

/** Which side of its connection sent a packet; undefined: it belongs to one, and is of neither. Pure. */
export function directionOf({ state }: Pick<PartlyKnown, "state">): "original" | "reply" | undefined {
  return state === "related" ? undefined : state === "new" ? "original" : "reply";
}

/** Whether a packet goes from port to port of one bridge, past no route; undefined: it can't be told. Pure. */
export function isBridged({ inDevice, outDevice }: Pick<PartlyKnown, "inDevice" | "outDevice">): boolean | undefined {
  if (inDevice === undefined || outDevice === undefined) return undefined;
  return outDevice === "" || (inDevice !== "" && inDevice !== outDevice) ? false : undefined;
}
