import { nftStatementText } from "@turnout/host/nft-statement";
import { ProxyError } from "@turnout/core/backend";
import { installHint, nftVersion } from "@turnout/host";
import type { BpfFeature, BpfProbe } from "@turnout/host/bpf";
import { renderNftTable } from "./nft-table.ts";
import type { EbpfWorld } from "../world.ts";

/** What serving packets can't do without beside what sockets need, in the order in which it is told. */
const NEEDED: readonly BpfFeature[] = ["btf", "tc", "conntrack"];

const CHECK_MS = 10_000;

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

/** What a probe and the version of nft say. */
export interface ProbedHost {
  readonly probe: BpfProbe;
  readonly nft: Awaited<ReturnType<typeof nftVersion>>;
}

/**
 * Look at the features of this kernel, and load the modules that packets need.
 *
 * Edges: modules stay loaded; nothing else is left behind. Where nft says no to the table the kernel lacks what the probe then names.
 */
export async function probeKernel(world: Pick<EbpfWorld, "exec" | "probeBpf">, signal: AbortSignal): Promise<ProbedHost> {
  const nft = await nftVersion(world.exec, signal);
  const probe = await world.probeBpf();
  const isTried = probe.missing.has("conntrack") && !probe.missing.has("btf") && nft !== undefined;
  if (!isTried) return { probe, nft };
  // For a table that is only checked the kernel loads its modules, too: nf_tables, nf_conntrack, nf_nat.
  await world.exec.run("nft", ["--check", "-f", "-"], {
    input: `${renderNftTable().map(nftStatementText).join("\n")}\n`,
    timeoutMs: CHECK_MS,
    signal,
  });
  return { probe: await world.probeBpf(), nft };
}

/** Look what this host has for serving packets. */
export async function findPacketSupport(world: Pick<EbpfWorld, "exec" | "probeBpf">, signal: AbortSignal): Promise<PacketSupport> {
  const { probe, nft } = await probeKernel(world, signal);
  return packetSupport(probe, nft !== undefined);
}
