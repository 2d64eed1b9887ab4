import { ProxyError } from "@turnout/core/backend";
import type { HostReport } from "@turnout/core/backend";
import { installHint, isAtLeast, nftVersion, probeHost, readHostAddresses } from "@turnout/host";
import type { HostProbe, LinuxWorld, Version } from "@turnout/host";
import { tryNftWrite } from "@turnout/host/nft";
import type { NftFacts, NftOptions } from "./options.ts";

/** Oldest nft and kernel this backend is made for. */
const NFT_MIN = "1.0.1";
/** reject in prerouting came with 5.9, the rest of what kube-proxy's nftables mode needs with 5.13. */
const KERNEL_MIN = "5.13";

/** Say what keeps this host from running the backend; `nft`: undefined where it is not installed. Pure. */
export function problemsOf({ kernel, hasNetAdmin }: HostProbe, nft: Version | undefined): readonly ProxyError[] {
  const problems: ProxyError[] = [];
  if (nft === undefined) problems.push(new ProxyError("tool_missing", "nft is not installed", { hint: installHint("nft") }));
  else if (!isAtLeast(nft, NFT_MIN))
    problems.push(new ProxyError("host_unsupported", `nft ${nft.text} is too old`, { hint: `install nft ${NFT_MIN} or newer` }));
  if (!isAtLeast(kernel, KERNEL_MIN))
    problems.push(new ProxyError("host_unsupported", `kernel ${kernel.text} is too old`, { hint: `use Linux ${KERNEL_MIN} or newer` }));
  if (!hasNetAdmin)
    problems.push(new ProxyError("permission_denied", "no right to change the network", { hint: "run as root, or with CAP_NET_ADMIN" }));
  return problems;
}

/** Look at tools, kernel, rights and addresses, and try a write that changes nothing. */
export async function probeNft(
  { nftPath }: NftOptions,
  world: LinuxWorld,
  signal: AbortSignal,
): Promise<Omit<HostReport<NftFacts>, "facts">> {
  const probe = await probeHost();
  const nft = await nftVersion(world.exec, signal, nftPath);
  const problems = problemsOf(probe, nft);
  const { crash, lacks = {} } = problems.length > 0 ? {} : await tryNftWrite(world.exec, nftPath, signal);
  return {
    versions: { kernel: probe.kernel.text, ...(nft === undefined ? {} : { nft: nft.text }) },
    problems,
    warnings: crash === undefined ? [] : [crash],
    capabilities: lacks,
  };
}

/** Read the host's addresses. */
export async function readFacts({ netlink }: Pick<LinuxWorld, "netlink">): Promise<NftFacts> {
  return { addresses: await readHostAddresses((family) => netlink.addresses(family)) };
}
