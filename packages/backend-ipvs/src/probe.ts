import { ProxyError } from "@turnout/core/backend";
import type { HostReport } from "@turnout/core/backend";
import { installHint, probeHost, readHostAddresses } from "@turnout/host";
import { findIptables, lackingFamilies, loadLegacyModules, lookupIn } from "@turnout/host/iptables";
import { IpsetTool } from "@turnout/host/ipset";
import { DEVICE } from "./names.ts";
import { serviceKey } from "./objects.ts";
import type { IpvsFacts, IpvsOptions } from "./options.ts";
import type { IpvsWorld } from "./world.ts";

/** An address for documentation that nobody serves, to see whether the kernel has a scheduler. @source kube-proxy CanUseIPVSProxier; RFC 5737 */
const TRIAL = { family: "IPv4", protocol: "TCP", address: "198.51.100.0", port: 20_000 } as const;

/**
 * Look at tools, kernel, rights, schedulers and addresses.
 *
 * Edges: the kernel tells of a scheduler only by taking a virtual server with it, so one is made and deleted where none has it yet.
 */
export async function probeIpvs(
  options: IpvsOptions,
  world: IpvsWorld,
  signal: AbortSignal,
): Promise<Omit<HostReport<IpvsFacts>, "facts">> {
  const { kernel, hasNetAdmin } = await probeHost();
  const versions: Record<string, string> = { kernel: kernel.text };
  const problems: ProxyError[] = [];
  let capabilities: HostReport<IpvsFacts>["capabilities"] = {};
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      problems.push(error);
    }
  };
  if (!hasNetAdmin)
    problems.push(new ProxyError("permission_denied", "no right to change the network", { hint: "run as root, or with CAP_NET_ADMIN" }));
  await attempt(async () => {
    const installed = await findIptables(world.exec, signal);
    const usable = installed.programs.filter(({ variant }) => options.variant === "auto" || variant === options.variant);
    for (const { variant, version } of usable) versions[`iptables-${variant}`] = version;
    if (usable.length === 0) throw new ProxyError("tool_missing", "iptables is not installed", { hint: installHint("iptables") });
    if (!hasNetAdmin) return;
    const choice = await lookupIn(world, options.variant).choice(signal, installed);
    await loadLegacyModules(choice, world.exec, signal);
    capabilities = await lackingFamilies(choice, world.exec, signal);
  });
  await attempt(async () => {
    versions["ipset"] = await new IpsetTool(world.exec).version(signal);
  });
  await attempt(async () => {
    versions["ipvs"] = await world.ipvs.version();
    if (!hasNetAdmin) return;
    for (const error of await missingSchedulers(options, world, signal)) problems.push(error);
  });
  return { versions, problems, capabilities };
}

/** Read the host's addresses, but for those on our device. */
export async function readFacts({ netlink }: Pick<IpvsWorld, "netlink">): Promise<IpvsFacts> {
  return { addresses: await readHostAddresses((family) => netlink.addresses(family), DEVICE) };
}

async function missingSchedulers(
  { scheduler: usual, schedulers }: IpvsOptions,
  { ipvs }: IpvsWorld,
  signal: AbortSignal,
): Promise<readonly ProxyError[]> {
  const listings = [await ipvs.list("IPv4"), await ipvs.list("IPv6")];
  const known = new Set(listings.flatMap(({ virtualServers }) => virtualServers.map(({ scheduler }) => scheduler)));
  // An empty one is what a process left, ours or kube-proxy's, that was killed while it looked.
  const left = listings[0]?.virtualServers.find((one) => serviceKey(one) === serviceKey(TRIAL));
  if (left?.realServers.length === 0) await ipvs.change([{ verb: "delete-service", service: TRIAL }], signal);
  const errors: ProxyError[] = [];
  for (const scheduler of new Set([usual, ...Object.values(schedulers)])) {
    if (known.has(scheduler)) continue;
    const trial = { ...TRIAL, scheduler, flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 };
    const [refused] = await ipvs.change([{ verb: "add-service", service: trial }], signal);
    if (refused === undefined) await ipvs.change([{ verb: "delete-service", service: TRIAL }], signal);
    // Of a virtual server that is in use nothing can be learnt.
    else if (refused.code === "host_unsupported")
      errors.push(
        new ProxyError("host_unsupported", `the kernel has no scheduler ${scheduler}`, {
          object: `ipvs option ${scheduler === usual ? "scheduler" : "schedulers"}`,
          hint: `load it: modprobe ip_vs_${scheduler}; or choose another, e.g. rr`,
          cause: refused,
        }),
      );
    else if (refused.code !== "already_exists") errors.push(refused);
  }
  return errors;
}
