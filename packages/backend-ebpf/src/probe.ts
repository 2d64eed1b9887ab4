import { FAMILIES, ProxyError } from "@turnout/core/backend";
import type { Capabilities, HostReport, IPFamily } from "@turnout/core/backend";
import { probeHost, readHostAddresses } from "@turnout/host";
import { tryNftWrite } from "@turnout/host/nft";
import type { BpfFeature, BpfProbe } from "@turnout/host/bpf";
import { deviceFacts } from "./packets/devices.ts";
import type { DeviceFact } from "./packets/devices.ts";
import { ROOT_CGROUP } from "./options.ts";
import type { EbpfFacts, EbpfOptions } from "./options.ts";
import { packetSupport, probeKernel } from "./packets/packet-support.ts";
import type { EbpfWorld } from "./world.ts";

/** What nothing is served without, in the order in which it is told. */
const NEEDED: readonly BpfFeature[] = ["libbpf", "rights", "bpffs", "cgroup2", "cgroup-hooks", "refusals", "links", "batches"];

/** Say what keeps this host from running the backend, one line for each cause. Pure. */
export function problemsOf({ missing }: Pick<BpfProbe, "missing">): readonly ProxyError[] {
  // What needs a feature that is missing has that feature's error.
  const errors = NEEDED.flatMap((feature) => missing.get(feature) ?? []);
  return [...new Map(errors.map((error) => [error.message, error])).values()];
}

/** Say what can't be done where packets aren't served. Pure. */
export function lackingWithout(packets: readonly ProxyError[]): Readonly<Partial<Capabilities>> {
  if (packets.length === 0) return {};
  const why = `packets are not served: ${packets.map(({ what, hint }) => (hint === undefined ? what : `${what} (${hint})`)).join("; ")}`;
  return { drop: why, sourceRanges: why };
}

/** Look at the kernel's features, rights, mounts, addresses and devices. Leaves nothing behind. */
export async function probeEbpf(options: EbpfOptions, world: EbpfWorld, signal: AbortSignal): Promise<HostReport<EbpfFacts>> {
  const { kernel, hasIPv6 } = await probeHost();
  const { probe, nft } = await probeKernel(world, signal);
  const problems = [...problemsOf(probe)];
  const packets = packetSupport(probe, nft !== undefined);
  const unknown = whatKeepsCookies(world);
  if (unknown !== undefined) problems.push(unknown);
  if (options.hostSocketsOnly)
    problems.push(
      ...packets.problems.map(
        ({ code, what, hint }) =>
          new ProxyError(code, "option host-sockets-only leaves pods to packets, which can't be served", {
            object: hint === undefined ? what : `${what} (${hint})`,
          }),
      ),
    );
  const known = unknown === undefined ? world : { ...world, namespaceCookie: () => NO_NAMESPACE };
  const facts = await readFacts(options, known, packets.problems.length === 0);
  if (facts.cgroup === NO_CGROUP && !probe.missing.has("cgroup2"))
    problems.push(
      new ProxyError("not_found", "there is no such cgroup", {
        object: options.cgroup ?? "",
        hint: "option cgroup is the path of its folder",
      }),
    );
  if (problems.length === 0) {
    if (options.cgroup === undefined && facts.cgroup !== ROOT_CGROUP)
      world.log.warn("only processes below the cgroup of this container are served: its cgroup v2 mount is not the root of the host's", {
        hint: "mount the host's /sys/fs/cgroup, or name it by the option cgroup",
      });
    for (const error of packets.problems)
      world.log.warn("only sockets of this node are served, and no packets from elsewhere", { error: error.message });
    const stuck = whatKeepsSockets(probe, world);
    if (stuck !== undefined) world.log.warn("UDP sockets stay connected to endpoints that are gone", { error: stuck.message });
  }
  const { crash } = problems.length > 0 || nft === undefined ? {} : await tryNftWrite(world.exec, "nft", signal);
  return {
    facts,
    warnings: crash === undefined ? [] : [crash],
    versions: {
      kernel: kernel.text,
      ...(probe.libbpf === undefined ? {} : { libbpf: probe.libbpf }),
      ...(nft === undefined ? {} : { nft: nft.text }),
    },
    problems,
    capabilities: { ...lackingWithout(packets.problems), ...(hasIPv6 ? {} : { IPv6: "the kernel has no IPv6 here" }) },
  };
}

/** What keeps network namespaces from being told apart; undefined: nothing. */
function whatKeepsCookies(world: Pick<EbpfWorld, "namespaceCookie">): ProxyError | undefined {
  try {
    world.namespaceCookie();
    return undefined;
  } catch (error) {
    if (ProxyError.is(error, "host_unsupported")) return error;
    throw error;
  }
}

/** What keeps sockets from being ended whose endpoint is gone; undefined: nothing. */
function whatKeepsSockets({ missing }: Pick<BpfProbe, "missing">, world: SocketWorld): ProxyError | undefined {
  const inKernel = missing.get("socket-destroy");
  if (inKernel !== undefined) return inKernel;
  const [namespace] = world.namespaces();
  try {
    if (namespace !== undefined) world.namespaceCookie(namespace);
    return undefined;
  } catch (error) {
    // What is gone meanwhile has no sockets.
    if (ProxyError.is(error, "not_found")) return undefined;
    if (!ProxyError.is(error, "permission_denied")) throw error;
    const hint = "run as root, or with CAP_SYS_ADMIN, in the host's process namespace (hostPID)";
    return new ProxyError(error.code, error.what, { object: namespace ?? "", hint, cause: error });
  }
}

/** What sockets are ended with. */
type SocketWorld = Pick<EbpfWorld, "namespaces" | "namespaceCookie">;

/** The cookie of no network namespace: where the kernel has none. */
const NO_NAMESPACE = "0";

/** The number of a cgroup that isn't there. */
const NO_CGROUP = "0";

/** Devices to which IPVS proxies and Turnout's userspace backend give addresses of Services. */
const PROXIES_DEVICES: readonly string[] = ["kube-ipvs0", "turnout0"];

/** What facts are read from. */
type FactWorld = Pick<EbpfWorld, "netlink" | "mounts" | "namespaceCookie" | "cgroupNumber">;

/** Read what rendering may know of the host. A network namespace that is opted out and isn't there has no sockets. */
export async function readFacts(options: EbpfOptions, world: FactWorld, hasPackets: boolean): Promise<EbpfFacts> {
  const folder = options.cgroup ?? world.mounts().cgroup2;
  const list = (family: IPFamily): ReturnType<EbpfWorld["netlink"]["addresses"]> => world.netlink.addresses(family);
  return {
    addresses: await readHostAddresses(list),
    addressesOfNoProxy: await readHostAddresses(list, ...PROXIES_DEVICES),
    hostNamespace: world.namespaceCookie(),
    optedOut: options.optOutNamespaces.flatMap((path) => cookieOf(path, world)),
    cgroup: (folder === undefined ? undefined : world.cgroupNumber(folder)) ?? NO_CGROUP,
    hasPackets,
    devices: hasPackets ? await readDevices(options, world) : [],
  };
}

async function readDevices({ devices: wanted }: EbpfOptions, { netlink }: FactWorld): Promise<readonly DeviceFact[]> {
  const [routes, addresses] = await Promise.all([
    // Devices that are named are not found by routes, of which a router may have very many.
    Promise.all(wanted.length > 0 ? [] : FAMILIES.map((family) => netlink.routes(family))),
    Promise.all(FAMILIES.map((family) => netlink.addresses(family))),
  ]);
  return deviceFacts({ devices: await netlink.devices(), routes: routes.flat(), addresses: addresses.flat() }, wanted);
}

function cookieOf(path: string, world: Pick<EbpfWorld, "namespaceCookie">): readonly string[] {
  try {
    return [world.namespaceCookie(path)];
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return [];
    throw error;
  }
}
