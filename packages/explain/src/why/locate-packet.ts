import { familyOf, listedNames, ProxyError, UNKNOWN_DEVICE, type AskedPacket, type Exec, type ParsedQuestion } from "@turnout/core";
import { readLinks } from "../readings/links.ts";
import { routeFor } from "../readings/route.ts";

/**
 * Where a packet comes from: its source address, and the device it comes in by ("": this host sends it).
 * @throws {ProxyError} `invalid_object` for a device that isn't here.
 */
export async function locatePacket(
  question: ParsedQuestion,
  given: string | undefined,
  hostAddresses: readonly string[],
  exec: Exec,
  signal: AbortSignal,
): Promise<AskedPacket> {
  const { from, family, protocol, destination, port } = question;
  const packet = { family, protocol, destination, port };
  if (from === "host") {
    const route = await routeFor(exec, family, { to: destination }, signal);
    // Without a route the kernel chooses none. Loopback addresses reach nobody else, so another one is likelier.
    const loopback = family === "IPv4" ? "127.0.0.1" : "::1";
    const first = hostAddresses.find((address) => !address.startsWith("127.") && address !== loopback) ?? loopback;
    return { ...packet, source: (route.is === "way" ? route.source : undefined) ?? first, device: "" };
  }
  if (given !== undefined) return { ...packet, source: from, device: await existing(given, exec, signal) };
  return await locateAddress({ ...packet, source: from }, hostAddresses, exec, signal);
}

const DEVICES_SHOWN = 6;

/** A device that was mistyped would make every route seem to be missing. */
async function existing(device: string, exec: Exec, signal: AbortSignal): Promise<string> {
  const names = [...(await readLinks(exec, signal)).keys()];
  if (names.length === 0 || names.includes(device)) return device;
  const others = names.filter((name) => name !== "lo");
  throw new ProxyError("invalid_object", `no device ${device} here`, {
    object: "--in",
    hint: others.length === 0 ? "there is none but lo" : `there are ${listedNames(others, DEVICES_SHOWN)}`,
  });
}

/** Tell by which device a client's packets come in: the one that answers would leave by. */
async function locateAddress(
  packet: Omit<AskedPacket, "device">,
  hostAddresses: readonly string[],
  exec: Exec,
  signal: AbortSignal,
): Promise<AskedPacket> {
  const { source, family } = packet;
  const isHosts = hostAddresses.includes(source) || source.startsWith("127.") || source === "::1";
  if (isHosts) return { ...packet, device: "" };
  const route = familyOf(source) === family ? await routeFor(exec, family, { to: source }, signal) : undefined;
  return route?.is === "way" ? { ...packet, device: route.device, isDeviceAssumed: true } : { ...packet, device: UNKNOWN_DEVICE };
}
