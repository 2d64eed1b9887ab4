import { networkInterfaces } from "node:os";
import { canonicalIP } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { HostReport, IPFamily } from "@turnout/core/backend";
import { hasNetAdmin, probeHost, readHostAddresses } from "@turnout/host";
import type { HostAddress, HostAddresses, LinuxWorld } from "@turnout/host";
import { readFile } from "node:fs/promises";
import { OWN_DEVICE } from "./objects.ts";
import type { UserspaceOptions } from "./options.ts";
import { ownsAddresses } from "./render.ts";
import type { UserspaceFacts } from "./render.ts";
import type { UserspaceWorld } from "./world.ts";

/** Read the host's addresses, without ours and without link-local ones. */
export function readAddresses({ netlink }: Pick<LinuxWorld, "netlink">): Promise<HostAddresses> {
  const list = (family: IPFamily): Promise<readonly LinkedAddress[]> =>
    process.platform === "linux" ? netlink.addresses(family) : Promise.resolve(interfaceAddresses(family));
  return readHostAddresses(list, OWN_DEVICE);
}

type LinkedAddress = Pick<HostAddress, "ip" | "link">;

/** Where there is no netlink. */
function interfaceAddresses(family: IPFamily): readonly LinkedAddress[] {
  return Object.entries(networkInterfaces()).flatMap(([link, ofLink = []]) =>
    ofLink.flatMap(({ address }) => {
      const ip = canonicalIP(address);
      return ip?.family === family ? [{ ip: ip.text, link }] : [];
    }),
  );
}

/** Tell whether this process may give the host addresses: Linux, and CAP_NET_ADMIN. */
export async function mayOwnAddresses(): Promise<boolean> {
  if (process.platform !== "linux") return false;
  return hasNetAdmin(await readFile("/proc/self/status", "utf8"));
}

/** Read what rendering may know of the host. */
export async function readFacts(world: Pick<UserspaceWorld, "netlink" | "canOwnAddresses">): Promise<UserspaceFacts> {
  return { addresses: await readAddresses(world), canOwnAddresses: await world.canOwnAddresses() };
}

/** Look at addresses and rights. Reads only. */
export async function probeUserspace(options: UserspaceOptions, world: UserspaceWorld): Promise<HostReport<UserspaceFacts>> {
  const facts = await readFacts(world);
  const problems = options.ownAddresses === true && !facts.canOwnAddresses ? [NOT_PERMITTED] : [];
  const addresses = ownsAddresses(options, facts) ? `services' own, on ${OWN_DEVICE}` : "the host's, and what is mapped";
  const capabilities = (await hasIPv6()) ? {} : { IPv6: "the kernel has no IPv6 here" };
  return { facts, versions: { node: process.version, addresses }, problems, capabilities };
}

/** Elsewhere than on Linux every system has it. */
async function hasIPv6(): Promise<boolean> {
  return process.platform !== "linux" || (await probeHost()).hasIPv6;
}

const NOT_PERMITTED: ProxyError = new ProxyError("permission_denied", "this process may not give the host addresses", {
  object: "userspace option own-addresses",
  hint: "run it on Linux as root or with CAP_NET_ADMIN, or map what you need with --map",
});
