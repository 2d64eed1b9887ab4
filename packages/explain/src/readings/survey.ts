import { ProxyError } from "@turnout/core";
import type { World } from "@turnout/core";
import { hasCapability, hasNetAdmin, isRootStatus } from "@turnout/host";
import type { Device, HostAddress, Netlink, NftChain } from "@turnout/host";
import { findIptables } from "@turnout/host/iptables";
import type { InstalledIptables } from "@turnout/host/iptables";
import type { ExternalChain, ExternalTable } from "@turnout/host/rules";
import { hostSurveyFiles } from "./files.ts";
import type { SurveyFiles } from "./files.ts";
import { readHostRoutes } from "./host-routes.ts";
import type { HostRoute } from "./host-routes.ts";
import { readAllExternalTables } from "../tables/external-tables.ts";
import type { Unseen } from "../tables/external-tables.ts";
import { isIptablesTable, namesInLegacy, namesInNft } from "../tables/iptables-names.ts";
import type { IptablesTable } from "../tables/iptables-names.ts";
import { readDeviceParameters, readKernelParameters } from "./parameters.ts";
import type { DeviceParameters, KernelParameters } from "./parameters.ts";
import { findProcesses, seesAllProcesses } from "./processes.ts";
import { readUplinks } from "./uplinks.ts";
import { isOwnTable, mayWriteRules, writersOf } from "./writers.ts";
import type { Writer } from "./writers.ts";

/** Where a chain of ours is called in. */
export interface OwnHook {
  readonly family: string;
  readonly table: string;
  readonly chain: string;
  readonly type: string;
  readonly hook: string;
  readonly priority: number;
}

/** A host as it is found: whatever decides about packets but our own rules. Plain data. */
export interface HostSurvey {
  /** As `uname -r`. */
  readonly kernel: string;
  readonly isRoot: boolean;
  readonly parameters: KernelParameters;
  /** Of each device in IPv4; `all` first. */
  readonly deviceParameters: readonly DeviceParameters[];
  readonly devices: readonly Device[];
  /** Devices by which there are routes to a next hop. */
  readonly uplinks: readonly string[];
  /** Of the main table, both families; undefined: they could not be read. */
  readonly routes: readonly HostRoute[] | undefined;
  /** Of both families. */
  readonly addresses: readonly HostAddress[];
  /** Tables of nft that are neither ours nor iptables', `FAMILY NAME`. */
  readonly tables: readonly string[];
  /** Rules of other programs, but for service proxies', in nftables and in both variants of iptables. */
  readonly external: readonly ExternalTable[];
  /** Our own base chains in nft. */
  readonly ownHooks: readonly OwnHook[];
  /** Every table that exists, of both variants; ours are among them, without what belongs to Services. */
  readonly iptables: readonly IptablesTable[];
  /** Which variants are installed. */
  readonly iptablesTools: readonly string[];
  readonly writers: readonly Writer[];
  /** False: a program may run here that isn't among the processes that were looked at. */
  readonly seesProcesses: boolean;
  /** Virtual servers of IPVS; undefined: it isn't in use, or can't be seen. */
  readonly virtualServers: number | undefined;
  readonly unseen: readonly Unseen[];
}

/** What a survey works with. */
export interface SurveyOptions {
  readonly world: Pick<World, "exec"> & { readonly netlink: Pick<Netlink, "devices" | "addresses" | "nftChains" | "nftTables"> };
  /** Default: this machine's. */
  readonly files?: SurveyFiles;
}

const NO_TOOLS: InstalledIptables = { programs: [], plain: undefined };

/**
 * Look at this host: kernel parameters, who writes rules, and what foreign rules say. Reads only; what can't be seen is named in the result.
 *
 * Edges: bounded, and no large table of ours or of another service proxy is listed, but for the legacy variant of iptables, whose tables the
 * kernel gives in one piece.
 * @throws {ProxyError} `canceled`.
 */
export async function surveyHost(options: SurveyOptions, signal: AbortSignal): Promise<HostSurvey> {
  const { world, files = hostSurveyFiles } = options;
  const { exec, netlink } = world;
  const unseen: Unseen[] = [];
  const tried = async <T>(what: string, work: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !ProxyError.is(error)) throw error;
      unseen.push({ what, because: error.what });
      return otherwise;
    }
  };
  const status = (await files.read("/proc/self/status")) ?? "";
  const mayLook = hasNetAdmin(status) || hasCapability(status, CAP_NET_RAW);
  const devices = await tried("devices", () => netlink.devices(), []);
  const addresses = await tried("addresses", async () => [...(await netlink.addresses("IPv4")), ...(await netlink.addresses("IPv6"))], []);
  const programs = await tried("programs of iptables", () => findIptables(exec, signal), NO_TOOLS);
  let chains: readonly NftChain[] = [];
  if (!mayLook) unseen.push({ what: "rules of nft and iptables", because: "without root, or CAP_NET_ADMIN, the kernel doesn't show them" });
  else chains = await tried("chains of nft", () => netlink.nftChains(), []);
  const others = chains.filter((chain) => !isIptablesTable(chain) && !isOwnTable(chain.table));
  const iptables = mayLook
    ? [
        ...namesInNft(chains),
        ...(await tried("rules of iptables (legacy)", () => namesInLegacy(programs.programs, exec, files.read, signal), [])),
      ]
    : [];
  const rules = mayLook ? await readAllExternalTables({ exec, netlink, read: files.read }, signal) : { tables: [], unseen: [] };
  unseen.push(...rules.unseen.map(({ what, because }) => ({ what: `rules of ${what}`, because })));
  const tables = [...new Set(others.map(({ family, table }) => `${family} ${table}`))];
  const own = [...new Set(chains.filter(({ table }) => isOwnTable(table)).map(({ family, table }) => `${family} ${table}`))];
  const processes = await findProcesses(mayWriteRules, files);
  const seesProcesses = isRootStatus(status) && (await seesAllProcesses(files));
  if (!seesProcesses) unseen.push({ what: "some processes", because: "without root, and in a container, /proc doesn't show all of them" });
  return {
    kernel: ((await files.read("/proc/sys/kernel/osrelease")) ?? "").trim(),
    isRoot: isRootStatus(status),
    parameters: await readKernelParameters(files),
    deviceParameters: await readDeviceParameters(files),
    devices,
    uplinks: await readUplinks(files),
    routes: await tried(
      "routes",
      async () => [...(await readHostRoutes(exec, "IPv4", signal)), ...(await readHostRoutes(exec, "IPv6", signal))],
      undefined,
    ),
    addresses,
    tables,
    external: rules.tables,
    ownHooks: chains.flatMap(({ family, table, name, base }) =>
      base === undefined || !isOwnTable(table)
        ? []
        : [{ family, table, chain: name, type: base.type, hook: base.hook, priority: base.priority }],
    ),
    iptables,
    iptablesTools: programs.programs.map(({ variant, version }) => `${version} (${variant})`),
    writers: writersOf({ processes, devices: devices.map(({ name }) => name), tables: [...tables, ...own], iptables }),
    seesProcesses,
    virtualServers: virtualServersIn(await files.read("/proc/net/ip_vs")),
    unseen,
  };
}

/** Bit of CAP_NET_RAW. @source linux/capability.h */
const CAP_NET_RAW = 13n;

/** Count the virtual servers that /proc/net/ip_vs lists; undefined: none. Pure. */
export function virtualServersIn(text: string | undefined): number | undefined {
  const count = text?.match(/^(?:TCP|UDP|SCTP|FWM) /gm)?.length ?? 0;
  return count === 0 ? undefined : count;
}

/** A survey as it is printed: rules of other programs as text. */
export type PrintedSurvey = Omit<HostSurvey, "external"> & {
  readonly external: readonly {
    readonly name: string;
    readonly chains: readonly { readonly name: string; readonly hook?: unknown; readonly rules: readonly string[] }[];
  }[];
};

/** Make a survey printable. Pure. */
export function printedSurvey({ external, ...rest }: HostSurvey): PrintedSurvey {
  const textOf = ({ rules, ...chain }: ExternalChain): PrintedSurvey["external"][number]["chains"][number] => ({
    ...chain,
    rules: rules.map(({ text }) => text),
  });
  return { ...rest, external: external.map(({ name, chains }) => ({ name, chains: Array.from(chains.values(), textOf) })) };
}
