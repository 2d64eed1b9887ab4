import type { Exec, IPFamily } from "@turnout/core";

/** A device as `ip -j link` tells of it. */
export interface Link {
  readonly name: string;
  readonly isUp: boolean;
  readonly hasCarrier: boolean;
  readonly mtu: number;
  /** The device of which it is a port; absent: it is none's. */
  readonly master?: string;
  /** The number by which the kernel knows the network namespace in which its other end is; absent: it is in this one, or there is none. */
  readonly namespace?: number;
  /** Of a bridge's port: whether the bridge sends a packet back by the port that it came in by; absent: it is none. */
  readonly isHairpin?: boolean;
  /** Of a bridge's port: the bridge sends nothing by it, nor takes anything in (spanning tree); absent: it does. */
  readonly isBlocked?: true;
  /** It takes in what is for others, too. */
  readonly isPromiscuous?: boolean;
  /** Of a bridge: whether it has what goes from port to port of it pass the rules of a family, whatever the kernel's parameter says; absent: it is none. */
  readonly bridge?: Readonly<Record<IPFamily, boolean>>;
}

/** Read all devices. */
export async function readLinks(exec: Exec, signal: AbortSignal): Promise<ReadonlyMap<string, Link>> {
  const { code, stdout } = await exec.run("ip", ["-j", "-d", "link", "show"], { signal });
  const listed = code === 0 ? (JSON.parse(stdout) as readonly Readonly<Record<string, unknown>>[]) : [];
  const links = listed.map((one): Link => {
    const flags = (one["flags"] ?? []) as readonly string[];
    return {
      name: String(one["ifname"]),
      isUp: flags.includes("UP"),
      hasCarrier: flags.includes("LOWER_UP"),
      mtu: Number(one["mtu"]),
      ...(typeof one["master"] === "string" ? { master: one["master"] } : {}),
      ...(typeof one["link_netnsid"] === "number" ? { namespace: one["link_netnsid"] } : {}),
      ...(flags.includes("PROMISC") ? { isPromiscuous: true } : {}),
      ...portOf(one),
      ...bridgeOf(one),
    };
  });
  return new Map(links.map((link) => [link.name, link]));
}

/** A port of a device that is down is `disabled`, too. */
const BLOCKED: ReadonlySet<string> = new Set(["disabled", "listening", "learning", "blocking"]);

function portOf(listed: Readonly<Record<string, unknown>>): Pick<Link, "isHairpin" | "isBlocked"> {
  const info = (listed["linkinfo"] ?? {}) as Readonly<Record<string, unknown>>;
  const data = (info["info_slave_data"] ?? {}) as Readonly<Record<string, unknown>>;
  if (info["info_slave_kind"] !== "bridge") return {};
  return { isHairpin: data["hairpin"] === true, ...(BLOCKED.has(String(data["state"])) ? { isBlocked: true } : {}) };
}

function bridgeOf(listed: Readonly<Record<string, unknown>>): Pick<Link, "bridge"> {
  const info = (listed["linkinfo"] ?? {}) as Readonly<Record<string, unknown>>;
  const data = (info["info_data"] ?? {}) as Readonly<Record<string, unknown>>;
  return info["info_kind"] === "bridge" ? { bridge: { IPv4: data["nf_call_iptables"] === 1, IPv6: data["nf_call_ip6tables"] === 1 } } : {};
}
