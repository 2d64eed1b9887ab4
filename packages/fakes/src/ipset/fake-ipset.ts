import { cidrContains, parseCIDR, parseIP, ProxyError } from "@turnout/core";
import type { Exec, ExecResult, IPFamily } from "@turnout/core";
import type { FaultSwitches } from "@turnout/conformance";
import { PARTS } from "./fake-set.ts";
import type { FakeSet } from "./fake-set.ts";
import { runIpset } from "./run-ipset.ts";
import type { PacketEnds, SetLookup } from "../host/set-lookup.ts";

/** What the fake shares with the rest of its host. */
export interface FakeIpsetHost {
  /** Asked before each change that the proxy makes. */
  readonly faults: FaultSwitches;
  /** Whether a rule names a set, which then can't be destroyed. */
  isNamed(name: string): boolean;
}

/**
 * ipset and the kernel's sets behind it, in memory: a part of a fake host, and what rules of {@link FakeIptables} ask.
 *
 * Shape: it knows the types of sets that Turnout makes; others are refused as unknown. Entries have no timeouts.
 * Edges: it behaves like ipset 7.17 on Linux 6.18, checked against them by `ipset-kernel.test.ts`. Hashes have their entries in the order in which
 * they came, the kernel's in none.
 */
export class FakeIpset implements SetLookup {
  /** What the proxy runs; its changes fail as the switches say. Knows `ipset` alone. */
  readonly exec: Exec;
  readonly #sets = new Map<string, FakeSet>();
  readonly #host: FakeIpsetHost;
  #written = 0;

  constructor(host: FakeIpsetHost) {
    this.#host = host;
    this.exec = {
      run: (file, args, { input = "", signal } = {}) => {
        if (signal?.aborted === true) return Promise.reject(new ProxyError("canceled", "the command was given up", { object: file }));
        if (!/^(?:.*\/)?ipset$/.test(file)) return Promise.reject(new ProxyError("tool_missing", `${file} is not installed`));
        return Promise.resolve(this.#runOwn(args, input));
      },
      open: (file) => {
        throw new Error(`nobody starts ${file} ahead of its input`);
      },
    };
  }

  /** The sets that are there. */
  get sets(): ReadonlyMap<string, FakeSet> {
    return this.#sets;
  }

  /** How many lines of changes the proxy has given that were not refused as a whole. */
  get written(): number {
    return this.#written;
  }

  /** Somebody else runs `ipset`, e.g. with `save` or `restore`. */
  run(args: string, input: string = ""): ExecResult {
    return this.#run(args.split(" "), input, () => false);
  }

  familyOf(name: string): IPFamily | "any" | undefined {
    const set = this.#sets.get(name);
    return set?.type === "bitmap:port" ? "any" : set?.family;
  }

  has(name: string, packet: PacketEnds, directions: readonly ("src" | "dst")[]): boolean {
    const set = this.#sets.get(name);
    if (set === undefined) return false;
    const parts = PARTS[set.type];
    // With fewer words than parts the kernel matches nothing.
    if (directions.length < parts.length) return false;
    const texts = parts.map((part, index) => partOf(part, packet, directions[index] ?? "src", set.type === "bitmap:port"));
    if (!parts.includes("net")) return set.entries.has(texts.join(","));
    const prefix = `${texts.slice(0, -1).join(",")},`;
    const end = directions[parts.length - 1] === "src" ? packet.source : packet.destination;
    for (const entry of set.entries.keys()) if (entry.startsWith(prefix) && isIn(entry.slice(prefix.length), end)) return true;
    return false;
  }

  #run(args: readonly string[], input: string, isRefused: (entry: string) => boolean): ExecResult {
    return runIpset(args, input, { sets: this.#sets, isNamed: (name) => this.#host.isNamed(name), isRefused });
  }

  #runOwn(args: readonly string[], input: string): ExecResult {
    const text = `${args.join(" ")}\n${input}`;
    const count = (text.match(/^(?:create|add|del|destroy|swap|flush) /gm) ?? []).length;
    const isRefused = (entry: string): boolean => this.#host.faults.isRefused(entry);
    if (count === 0) return this.#run(args, input, isRefused);
    // An address that is refused spoils its line alone.
    const when = this.#host.faults.next([]);
    if (when === "before") return { code: 1, stdout: "", stderr: "ipset v7.17: Kernel error received: Cannot allocate memory\n" };
    this.#written += count;
    const lines = input.trimEnd().split("\n");
    const given = when === "during" ? lines.slice(0, Math.ceil(lines.length / 2)).join("\n") : input;
    const result = this.#run(args, given, isRefused);
    return when === undefined ? result : { code: 137, stdout: "", stderr: "" };
  }
}

function partOf(part: "ip" | "port" | "net", packet: PacketEnds, direction: "src" | "dst", isBare: boolean): string {
  if (part !== "port") return direction === "src" ? packet.source : packet.destination;
  const port = direction === "src" ? packet.sourcePort : packet.port;
  return isBare ? String(port) : `${packet.protocol}:${port}`;
}

function isIn(net: string, address: string): boolean {
  const [cidr, ip] = [parseCIDR(net.includes("/") ? net : `${net}/${net.includes(":") ? 128 : 32}`), parseIP(address)];
  return cidr !== undefined && ip !== undefined && cidr.family === ip.family && cidrContains(cidr, ip);
}
