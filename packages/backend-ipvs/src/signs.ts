import type { IPFamily } from "@turnout/core/backend";
import type { NftEvent, SignChanges, Signs } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import { isOwnChain, JUMPS, SHARED_CHAINS } from "./layout.ts";
import { DEVICE } from "./names.ts";
import { ownSets } from "./observe.ts";
import type { IpvsWorld } from "./world.ts";

const TABLES = ["nat", "filter", "mangle"] as const;

/** What is looked at. */
export interface SignSources {
  readonly family: IPFamily;
  readonly world: Pick<IpvsWorld, "netlink" | "ipvs">;
  readonly tool: Pick<IptablesTool, "variant">;
  /** How many addresses our device has. */
  readonly bound: BoundCount;
}

/** Counts the addresses on our device anew after it heard that some have changed, as the kernel tells of that. */
export class BoundCount {
  #count: Promise<number> | undefined;

  /** Some may have changed. */
  forget(): void {
    this.#count = undefined;
  }

  read(netlink: Pick<IpvsWorld["netlink"], "addresses">, family: IPFamily): Promise<number> {
    this.#count ??= netlink.addresses(family).then((all) => all.filter(({ link }) => link === DEVICE).length);
    return this.#count;
  }
}

/**
 * Read the signs of what is ours: how many virtual and real servers there are, members of our sets, addresses on our device, and how much tables of
 * legacy iptables hold.
 *
 * Edges: addresses of real servers, and virtual servers of IPv6, are in no sign.
 */
export async function readSigns({ family, world, tool, bound }: SignSources): Promise<Signs> {
  const { netlink, ipvs } = world;
  const signs = new Map<string, string>();
  if (tool.variant === "legacy") {
    for (const table of TABLES) {
      const info = netlink.legacyTableInfo(family, table);
      if (info !== undefined) signs.set(`rules of table ${table}`, [info.entries, info.bytes, ...info.offsets].join(" "));
    }
  }
  if (family === "IPv4") {
    const { virtualServers, realServers, digest } = ipvs.summary();
    signs.set("virtual servers", `${virtualServers} ${digest}`);
    signs.set("real servers", String(realServers));
  }
  const sizes = await netlink.setSizes();
  for (const name of ownSets(family)) signs.set(`members of set ${name}`, String(sizes.get(name) ?? "none"));
  signs.set(`addresses on ${DEVICE}`, String(await bound.read(netlink, family)));
  return signs;
}

/** Say what has changed, for people; the kernel doesn't know by whom. Pure. */
export function explainSigns(changes: SignChanges): string {
  const number = (text: string | undefined): string => text?.split(" ")[0] ?? "none";
  const texts = Array.from(changes, ([sign, { before, now }]) => `${sign} (${number(now)} instead of ${number(before)})`);
  return `somebody changed ${texts.slice(0, 4).join(", ")}${texts.length > 4 ? ` and ${texts.length - 4} more` : ""}; the kernel does not tell who`;
}

/** Say what somebody else did to chains of ours, if a commit tells so. Pure. */
export function explainCommit(event: NftEvent, family: IPFamily): string | undefined {
  if (event.kind === "lost") return "the ruleset changed faster than the kernel could tell";
  const ip = family === "IPv4" ? "ip" : "ip6";
  const isOurs = (full: string, chain: string): boolean =>
    TABLES.some(
      (table) =>
        full === `${ip} ${table}` &&
        (SHARED_CHAINS[table].includes(chain) ||
          isOwnChain(table, chain) ||
          JUMPS.some((jump) => jump.table === table && jump.from === chain)),
    );
  const touched = event.tables.filter((full) => TABLES.some((table) => full === `${ip} ${table}`));
  const changes = event.changes();
  const isTouched = changes === undefined || changes.some(({ table, kind, name }) => kind === "table" || isOurs(table, name));
  return touched.length > 0 && isTouched ? `${event.process} (pid ${event.pid}) changed table ${touched.join(", ")}` : undefined;
}
