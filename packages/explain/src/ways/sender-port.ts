import type { AskedPacket } from "@turnout/core";
import type { Netlink } from "@turnout/host";
import type { Link } from "../readings/links.ts";
import { addressesBehind } from "./lost-links.ts";
import type { Way } from "./way.ts";

/** More ports than this are not looked behind. */
const PORTS_MAX = 256;

/** Find the port of a bridge behind which the sender is, where it is an endpoint itself. @throws {ProxyError} what netlink fails with. */
export async function readSenderPort(
  netlink: Pick<Netlink, "addressesIn">,
  links: ReadonlyMap<string, Link>,
  { family, source, device }: AskedPacket,
  ways: readonly Way[],
): Promise<Link | undefined> {
  if (links.get(device)?.bridge === undefined || !ways.some(({ endpoint }) => endpoint.ip === source)) return undefined;
  const ports = [...links.values()].filter(({ master }) => master === device).slice(0, PORTS_MAX);
  const behind = await Promise.all(ports.map((port) => addressesBehind(netlink, [port], family)));
  return ports.find((_, index) => behind[index]?.includes(source) === true);
}
