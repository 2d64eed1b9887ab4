import { SERVICE_FLAG } from "@turnout/host/ipvs/model";
import type { VirtualServerSettings } from "@turnout/host/ipvs/model";
import type { PacketEnds } from "../host/set-lookup.ts";
import type { FakeRealServer } from "./fake-server.ts";

/**
 * Choose the real server of a new connection; undefined: none may have it.
 *
 * Shape: `random` decides where the kernel's choice depends on what went before (rr, wrr) or on nothing (ties).
 * Edges: hashes are others than the kernel's, but as steady. `lblc`, `lblcr` and `nq` are taken for `lc` and `sed`.
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
    case "dh": {
      const found = byHash(servers, packet.destination);
      return found !== undefined && found.weight > 0 ? found : undefined;
    }
    case "fo":
      return best(usable, ({ weight }) => weight, random);
    case "ovf":
      return best(
        usable.filter(({ weight, activeConnections }) => activeConnections + 1 <= weight),
        ({ weight }) => weight,
        random,
      );
    case "lc":
    case "lblc":
    case "lblcr":
      return best(usable, (server) => -load(server), random);
    case "wlc":
      return best(usable, (server) => -load(server) / server.weight, random);
    case "sed":
    case "nq":
      return best(usable, ({ activeConnections, weight }) => -(activeConnections + 1) / weight, random);
    case "wrr":
      return byWeight(usable, random);
    default:
      return usable[Math.floor(random() * usable.length)];
  }
}

/** @source Linux ip_vs_dest_conn_overhead */
function load({ activeConnections, inactiveConnections }: FakeRealServer): number {
  return activeConnections * 256 + inactiveConnections;
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

function best(
  servers: readonly FakeRealServer[],
  worth: (server: FakeRealServer) => number,
  random: () => number,
): FakeRealServer | undefined {
  const most = Math.max(...servers.map(worth));
  const all = servers.filter((server) => worth(server) === most);
  return all[Math.floor(random() * all.length)];
}
