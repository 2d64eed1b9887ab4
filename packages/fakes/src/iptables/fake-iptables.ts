import { FAMILIES, invariant } from "@turnout/core";
import type { Clock, Exec, ExecOptions, ExecResult, IPFamily } from "@turnout/core";
import type { FaultSwitches, Packet, Trace } from "@turnout/conformance";
import type { IptablesVariant, MatchPart } from "@turnout/host/iptables";
import { RecentLists } from "@turnout/host/rules";
import type { ExternalTable } from "@turnout/host/rules";
import type { FakeNetlink, FakeSysctl } from "@turnout/host/testing";
import { createIptablesExec } from "./fake-exec.ts";
import { NO_SETS } from "../host/set-lookup.ts";
import type { SetLookup } from "../host/set-lookup.ts";
import { EXTERNAL_RULES, KUBELET_RULES } from "./external-rules.ts";
import { runProgram } from "./run-program.ts";
import type { ToolResult, Program } from "./run-program.ts";
import type { RuleSet } from "./tables.ts";
import { tamperWith } from "./tamper.ts";
import type { FollowOptions } from "../host/linux-fake-host.ts";
import { tracePacket } from "../host/trace-packet.ts";
import type { Balance, TraceHost } from "../host/trace-packet.ts";

/** Pids as the kernel would name them: the proxy's tool, and somebody's. */
const OWN_PID = 4_242;
const EXTERNAL_PID = 6_666;
const MS_PER_SECOND = 1_000;
const KILLED = 137;
/** Length of a process's name in the kernel. */
const COMM_LENGTH = 15;
const VARIANTS: readonly IptablesVariant[] = ["nft", "legacy"];

/** What the fake shares with the rest of its host. */
export interface FakeIptablesHost {
  readonly clock: Clock;
  /** Told of what the nft variant commits. */
  readonly netlink: FakeNetlink;
  readonly sysctl: FakeSysctl;
  /** Asked before each change that the proxy makes. */
  readonly faults: FaultSwitches;
  /** The sets that rules may name; default: there are none. */
  readonly sets?: SetLookup;
}

/** What the host is like at the start. */
export interface FakeIptablesOptions {
  /** What `iptables` is; default `nft`. Others and kubelet have written theirs with it. */
  readonly variant?: IptablesVariant;
  /** Whether kubelet has written its chains, KUBE-FIREWALL among them; default true. */
  readonly hasKubelet?: boolean;
}

/**
 * iptables and ip6tables of both variants, and the kernel's rules behind them, in memory: a part of a fake host.
 *
 * Shape: it begins with rules of others (a CNI's, kubelet's). Both variants are there, each with rules of its own, and both act on packets. It
 * knows the matches and targets that kube-proxy uses and what a foreign hand is likely to; others are refused as not installed.
 * Edges: it behaves like iptables 1.8.9 on Linux 6.18, checked against them by `real-iptables.test.ts` of the iptables backend. Nothing is counted.
 */
export class FakeIptables {
  /** The rules of both variants in both families. */
  readonly ruleSets: readonly RuleSet[] = VARIANTS.flatMap((variant) =>
    FAMILIES.map((family): RuleSet => ({ variant, family, tables: new Map() })),
  );
  /** What the proxy runs; its changes fail as the switches say. Also `sysctl`. */
  readonly exec: Exec;
  readonly #plain: IptablesVariant;
  readonly #host: FakeIptablesHost;
  readonly #recents = new RecentLists();
  /** Resolves when the lock is free. */
  #lock: Promise<void> | undefined;
  #written = 0;

  constructor(host: FakeIptablesHost, { variant = "nft", hasKubelet = true }: FakeIptablesOptions = {}) {
    this.#plain = variant;
    this.#host = host;
    this.exec = createIptablesExec(variant, host.sysctl, (program, args, options) => this.#runOwn(program, args, options));
    for (const family of FAMILIES) {
      this.write(variant, family, EXTERNAL_RULES[family]);
      if (hasKubelet) this.write(variant, family, KUBELET_RULES[family]);
    }
  }

  /** Somebody else runs one of the programs, e.g. `iptables-nft-restore --noflush`. */
  run(command: string, input: string = ""): Promise<ExecResult> {
    const [file = "", ...args] = command.split(" ");
    const exec = createIptablesExec(this.#plain, this.#host.sysctl, (program, words, options) =>
      Promise.resolve(this.#commit(program, words, options.input ?? "", EXTERNAL_PID)),
    );
    return exec.run(file, args, { input });
  }

  /** How many rules the proxy has written. */
  get written(): number {
    return this.#written;
  }

  /** Whether some rule names a set, which then can't be destroyed. */
  isSetNamed(name: string): boolean {
    return this.#named(({ set }) => set).has(name);
  }

  /** Somebody else gives an input to restore, which must go through. @throws {Error} when it doesn't. */
  write(variant: IptablesVariant, family: IPFamily, input: string): void {
    const name = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
    const { code, stderr } = this.#commit({ variant, family, does: "restore", name }, ["--noflush"], input, EXTERNAL_PID);
    invariant(code === 0, `what others do goes through: ${input}: ${stderr}`);
  }

  /** Somebody else does one thing to a backend's chains: the command, with its input; undefined when there is nothing to do. */
  tamper(random: () => number, isOwnChain: (name: string) => boolean): string | undefined {
    const tampering = tamperWith(this.ruleSets, random, isOwnChain);
    if (tampering === undefined) return undefined;
    const { variant, family } = tampering.rules;
    this.write(variant, family, tampering.input);
    return `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore: ${tampering.input.trimEnd().replaceAll("\n", "; ")}`;
  }

  /** Somebody takes the lock that legacy tools wait for; call what it gives to let it go. */
  holdLock(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#lock = promise;
    return () => {
      this.#lock = undefined;
      resolve();
    };
  }

  /**
   * Follow the first packet of a connection. Its client is remembered where a rule says so, and it `stays`. `balance` is what IPVS does; absent: there
   * is none.
   */
  follow(packet: Packet, { isLocal, random }: FollowOptions, stays: boolean, balance?: Balance): Trace {
    const { sysctl, clock, sets = NO_SETS } = this.#host;
    const host: TraceHost = {
      tables: this.ruleSets
        .filter(({ family }) => family === packet.family)
        .flatMap(tablesOf)
        .toReversed(),
      routesLocalnet: sysctl.values.get("net/ipv4/conf/all/route_localnet") === "1",
      isLocal,
      random,
      ...(balance === undefined ? {} : { balance }),
      asked: () => ({
        isInSet: (set, { protocol = "", source = "", sourcePort = 0, destination = "", destinationPort: port = 0 }, ends) =>
          sets.has(set, { protocol, source, sourcePort, destination, port }, ends),
        recent: (asked) => this.#recents.ask(asked, clock.nowMs()),
      }),
    };
    return stays ? tracePacket(packet, host) : this.#recents.withoutTraces(() => tracePacket(packet, host));
  }

  async #runOwn(program: Program, args: readonly string[], { input = "", signal }: ExecOptions): Promise<ExecResult> {
    const isLocked = await this.#waitForLock(program, args, signal);
    if (isLocked !== undefined) return isLocked;
    const when = isChange(program, args, input) ? this.#host.faults.next(`${args.join(" ")} ${input}`) : undefined;
    switch (when) {
      case undefined:
        return this.#commit(program, args, input, OWN_PID);
      case "before":
        return { code: 4, stdout: "", stderr: `${program.name}: Cannot allocate memory\n` };
      case "during": {
        // Tables are handed over one by one; with a single one there is nothing between.
        const end = input.indexOf("\nCOMMIT\n") + "\nCOMMIT\n".length;
        if (program.does === "restore" && end < input.length) this.#commit(program, args, input.slice(0, end), OWN_PID);
        return { code: KILLED, stdout: "", stderr: "" };
      }
      case "after":
        this.#commit(program, args, input, OWN_PID);
        return { code: KILLED, stdout: "", stderr: "" };
    }
  }

  /** Legacy tools that change or list wait for the lock, for ever where nobody said how long. */
  async #waitForLock(program: Program, args: readonly string[], signal: AbortSignal | undefined): Promise<ExecResult | undefined> {
    if (program.variant === "nft" || program.does === "save" || this.#lock === undefined) return undefined;
    const at = args.findIndex((word) => word === "-w" || word === "--wait");
    const seconds = at < 0 ? Number.NaN : Number(args[at + 1]);
    if (Number.isNaN(seconds)) {
      await this.#lock;
      return undefined;
    }
    const ending = new AbortController();
    signal?.addEventListener("abort", () => ending.abort(), { once: true });
    await Promise.race([this.#lock.then(() => ending.abort()), this.#host.clock.sleep(seconds * MS_PER_SECOND, ending.signal)]);
    if (ending.signal.aborted) return undefined;
    const stopped = `Another app is currently holding the xtables lock. Stopped waiting after ${seconds}s.\n`;
    return { code: 4, stdout: "", stderr: `Can't lock /run/xtables.lock: Resource temporarily unavailable\n${stopped}` };
  }

  #commit(program: Program, args: readonly string[], input: string, pid: number): ToolResult {
    const { variant, family, name } = program;
    const rules = this.#rulesOf(variant, family);
    const answer = runProgram(program, args, input, {
      rules,
      sets: this.#host.sets ?? NO_SETS,
    });
    if (pid === OWN_PID && answer.committed.length > 0) this.#written += input.split("\n").filter((line) => line.startsWith("-")).length;
    if (answer.committed.length > 0) this.#recents.keepOnly(() => this.#named(({ recent }) => recent));
    for (const table of variant === "nft" ? answer.committed : []) {
      const tables = [`${family === "IPv4" ? "ip" : "ip6"} ${table}`];
      this.#host.netlink.commitNft({ pid, process: name.slice(0, COMM_LENGTH), tables });
    }
    return answer;
  }

  #rulesOf(variant: IptablesVariant, family: IPFamily): RuleSet {
    const found = this.ruleSets.find((rules) => rules.variant === variant && rules.family === family);
    invariant(found !== undefined, "there are rules of both variants in both families");
    return found;
  }

  /** What some match of some rule names. */
  #named(nameOf: (match: MatchPart) => string | undefined): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { tables } of this.ruleSets)
      for (const chains of tables.values())
        for (const { rules } of chains.values())
          for (const { matches } of rules)
            for (const match of matches) {
              const name = nameOf(match);
              if (name !== undefined) names.add(name);
            }
    return names;
  }
}

function tablesOf({ variant, tables }: RuleSet): readonly ExternalTable[] {
  return Array.from(tables, ([table, chains]) => ({ name: `${variant} ${table}`, tool: "iptables", place: table, chains }));
}

/** Listings, checks and questions of version are no changes. */
function isChange({ does }: Program, args: readonly string[], input: string): boolean {
  if (does === "restore" && /^-S /m.test(input)) return false;
  if (does === "restore") return !args.some((word) => ["-t", "--test", "-V", "--version"].includes(word));
  return does === "change" && args.some((word) => /^-[ADIRNFXP]$/.test(word));
}
