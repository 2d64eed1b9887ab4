import { ProxyError } from "@turnout/core/backend";
import { installHint, nftVersion } from "@turnout/host";
import type { BpfFeature, BpfProbe } from "@turnout/host/bpf";
import type { EbpfWorld } from "./world.ts";

/** What serving packets can't do without beside what sockets need, in the order in which it is told. */
const NEEDED: readonly BpfFeature[] = ["btf", "tc", "conntrack"];

/** What this host has for serving packets. */
export interface PacketSupport {
  /** What is missing, one for each cause; none: packets are served. */
  readonly problems: readonly ProxyError[];
  /** The kernel has no tcx: programs are filters of clsact. */
  readonly byClsact: boolean;
}

/** Say what keeps packets from being served. Pure. */
export function packetSupport({ missing }: Pick<BpfProbe, "missing">, hasNft: boolean): PacketSupport {
  const errors = NEEDED.flatMap((feature) => missing.get(feature) ?? []);
  if (!hasNft) errors.push(new ProxyError("tool_missing", "nft is not installed", { hint: installHint("nft") }));
  return { problems: [...new Map(errors.map((error) => [error.message, error])).values()], byClsact: missing.has("tcx") };
}

/** Look what this host has for serving packets. */
export async function findPacketSupport(world: Pick<EbpfWorld, "exec" | "probeBpf">, signal: AbortSignal): Promise<PacketSupport> {
  const nft = await nftVersion(world.exec, signal);
  return packetSupport(await world.probeBpf(), nft !== undefined);
}
