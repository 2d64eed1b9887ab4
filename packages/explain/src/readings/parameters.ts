import type { SurveyFiles } from "./files.ts";

const ROOT = "/proc/sys/net";
/** More devices than this are not asked one by one. */
const DEVICES_MAX = 1_000;

/** Kernel parameters that decide about packets; numbers, absent where this kernel, or this network namespace, has none of that name. */
const NAMES = {
  forwardsIPv4: "ipv4/ip_forward",
  forwardsIPv6: "ipv6/conf/all/forwarding",
  disablesIPv6: "ipv6/conf/all/disable_ipv6",
  bridgeCallsIPv4: "bridge/bridge-nf-call-iptables",
  bridgeCallsIPv6: "bridge/bridge-nf-call-ip6tables",
  isTcpLiberal: "netfilter/nf_conntrack_tcp_be_liberal",
  conntrackCount: "netfilter/nf_conntrack_count",
  conntrackMax: "netfilter/nf_conntrack_max",
  ipvsConntrack: "ipv4/vs/conntrack",
} as const;

/** Kernel parameters of this network namespace. */
export type KernelParameters = Readonly<Partial<Record<keyof typeof NAMES, number>>>;

/** What the kernel does with packets of one device, in IPv4. */
export interface DeviceParameters {
  /** `all` is for every device, and the larger of both counts for `rpFilter`. */
  readonly name: string;
  /** 0: off, 1: strict, 2: loose. */
  readonly rpFilter: number;
  readonly forwards: boolean;
  /** 127.0.0.0/8 is routed like any other network. */
  readonly routesLoopback: boolean;
}

/** Name a kernel parameter as `sysctl` does. Pure. */
export function parameterName(parameter: keyof KernelParameters): string {
  return `net.${NAMES[parameter].replaceAll("/", ".")}`;
}

/** Read the kernel parameters. */
export async function readKernelParameters({ read }: Pick<SurveyFiles, "read">): Promise<KernelParameters> {
  const found = await Promise.all(
    Object.entries(NAMES).map(async ([parameter, path]): Promise<readonly [string, number | undefined]> => {
      const text = await read(`${ROOT}/${path}`);
      return [parameter, text === undefined ? undefined : Number(text)];
    }),
  );
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

/** Read what the kernel does with packets of each device, `all` first; `default` is left out, which no packet meets. */
export async function readDeviceParameters({ read, list }: Pick<SurveyFiles, "read" | "list">): Promise<readonly DeviceParameters[]> {
  const names = (await list(`${ROOT}/ipv4/conf`)).filter((name) => name !== "default" && name !== "all");
  const numberOf = async (name: string, parameter: string): Promise<number> =>
    Number((await read(`${ROOT}/ipv4/conf/${name}/${parameter}`)) ?? "0");
  return await Promise.all(
    ["all", ...names.toSorted().slice(0, DEVICES_MAX)].map(async (name) => ({
      name,
      rpFilter: await numberOf(name, "rp_filter"),
      forwards: (await numberOf(name, "forwarding")) === 1,
      routesLoopback: (await numberOf(name, "route_localnet")) === 1,
    })),
  );
}
