import { SERVICE_FLAG } from "@turnout/host/ipvs/model";
import type { VirtualServerSettings } from "@turnout/host/ipvs/model";
import type { PacketEnds } from "../host/set-lookup.ts";
import type { FakeRealServer } from "./fake-server.ts";

/**
 * Choose the real server of a new connection; undefined: none may have it.
 *
 * Shape: `random` decides where the kernel's choice depends on what went before: on the last one (rr, wrr) or on how many connections each has, as
 * with all schedulers that are not named here.
 * Edges: hashes are others than the kernel's, but as steady.
 * @source Linux net/netfilter/ipvs/ip_vs_rr.c and its neighbours
 */
export function schedule(
  { scheduler, flags }: VirtualServerSettings,
  servers: readonly FakeRealServer[],
  packet: PacketEnds,
  random: () => number,
): FakeRealServer | undefined {
  const usable = servers.filter(({ weight }) => weight > 0);
  const ends = (flags & SERVICE_FLAG.schedulerFlag2) === 0 ? packet.source : `${packet.source} ${packet.sourcePort}`;
  switch (scheduler) {
    case "sh":
      // It stays with a real server that takes no more, unless told to look for another.
      return withFallback(byHash(servers, ends), usable, ends, flags);
    case "mh":
      return byHash(usable, ends);
    case "wrr":
      return byWeight(usable, random);
    default:
      return usable[Math.floor(random() * usable.length)];
  }
}

function withFallback(
  found: FakeRealServer | undefined,
  usable: readonly FakeRealServer[],
  ends: string,
  flags: number,
): FakeRealServer | undefined {
  if (found === undefined || found.weight > 0) return found;
  return (flags & SERVICE_FLAG.schedulerFlag1) === 0 ? undefined : byHash(usable, ends);
}

function byHash(servers: readonly FakeRealServer[], text: string): FakeRealServer | undefined {
  let hash = 2_166_136_261;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619) >>> 0;
  return servers[(hash >>> 8) % servers.length];
}

function byWeight(servers: readonly FakeRealServer[], random: () => number): FakeRealServer | undefined {
  let left = random() * servers.reduce((sum, { weight }) => sum + weight, 0);
  return servers.find(({ weight }) => (left -= weight) < 0) ?? servers.at(-1);
}
