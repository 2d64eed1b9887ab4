import { ProxyError } from "@turnout/core/backend";
import type { HostReport } from "@turnout/core/backend";
import { installHint, isAtLeast, parseKernelVersion, probeHost, readHostAddresses, readParameter } from "@turnout/host";
import type { LinuxWorld } from "@turnout/host";
import { findIptables, lackingFamilies, loadLegacyModules, lookupIn } from "@turnout/host/iptables";
import { canCount } from "./counters.ts";
import type { IptablesFacts, IptablesOptions } from "./options.ts";
import type { IptablesWorld } from "./world.ts";

/** Oldest iptables this backend is tested with: older ones have neither both variants nor `-w` in iptables-restore as it is now. */
const IPTABLES_MIN = "1.8.0";
const TCP_LIBERAL = "net.netfilter.nf_conntrack_tcp_be_liberal";

/** Look at tools, kernel, rights and addresses. */
export async function probeIptables(
  options: IptablesOptions,
  world: IptablesWorld,
  signal: AbortSignal,
): Promise<HostReport<IptablesFacts>> {
  const { kernel, hasNetAdmin } = await probeHost();
  const problems: ProxyError[] = [];
  if (!hasNetAdmin)
    problems.push(new ProxyError("permission_denied", "no right to change the network", { hint: "run as root, or with CAP_NET_ADMIN" }));
  const versions: Record<string, string> = { kernel: kernel.text };
  const installed = await findIptables(world.exec, signal);
  const usable = installed.programs.filter(({ variant }) => options.variant === "auto" || variant === options.variant);
  for (const { variant, version } of usable) {
    versions[`iptables-${variant}`] = version;
    const parsed = parseKernelVersion(version);
    if (parsed === undefined || !isAtLeast(parsed, IPTABLES_MIN))
      problems.push(
        new ProxyError("host_unsupported", `iptables ${version} is too old`, { hint: `install iptables ${IPTABLES_MIN} or newer` }),
      );
  }
  if (usable.length === 0) problems.push(new ProxyError("tool_missing", "iptables is not installed", { hint: installHint("iptables") }));
  let capabilities: HostReport<IptablesFacts>["capabilities"] = {};
  if (problems.length === 0) {
    const choice = await lookupIn(world, options.variant).choice(signal, installed);
    versions["variant"] = choice.variant;
    await loadLegacyModules(choice, world.exec, signal);
    capabilities = await lackingFamilies(choice, world.exec, signal);
  }
  const facts = await readFacts(world, signal);
  if (!facts.canCount)
    world.log.info(
      "packets that are dropped as invalid, or come to node ports on 127.0.0.1, are not counted: this kernel has no nfnetlink_acct",
    );
  return { facts, versions, problems, capabilities };
}

/** Read the host's addresses, and what decides rules. */
export async function readFacts({ netlink, exec }: Pick<LinuxWorld, "netlink" | "exec">, signal: AbortSignal): Promise<IptablesFacts> {
  const addresses = await readHostAddresses((family) => netlink.addresses(family));
  return { addresses, isTcpLiberal: await isTcpLiberal(exec, signal), canCount: await canCount(netlink) };
}

/** A kernel that doesn't know the parameter (conntrack isn't loaded yet) has its default, which is strict. */
async function isTcpLiberal(exec: LinuxWorld["exec"], signal: AbortSignal): Promise<boolean> {
  try {
    return ((await readParameter(exec, TCP_LIBERAL, signal)) ?? "0") !== "0";
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return false;
    throw error;
  }
}
