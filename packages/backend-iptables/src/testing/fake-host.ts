import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf, invariant } from "@turnout/core";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { ExecOptions, ExecResult, HostAddress, IPFamily, World } from "@turnout/core";
import { HOST_ADDRESSES, UPLINK } from "@turnout/conformance";
import { createFakeLog, createFakeNetlink, createFakeSysctl, flowsOf, rememberFlow } from "@turnout/host/testing";
import type { FakeNetlink, FakeSysctl } from "@turnout/host/testing";
import { createIptablesExec } from "./fake-exec.ts";
import { FOREIGN_RULES, KUBELET_RULES } from "./foreign-rules.ts";
import { linesOf } from "./inventory.ts";
import { runProgram } from "./iptables.ts";
import type { Answer, Program } from "./iptables.ts";
import { RecentLists } from "./recent-lists.ts";
import type { RuleSet } from "./tables.ts";
import type { Variant } from "./table-names.ts";
import { tamperWith } from "./tamper.ts";
import { tracePacket } from "./tracer.ts";

/** Pids as the kernel would name them: the proxy's tool, and somebody's. */
const OWN_PID = 4_242;
const FOREIGN_PID = 6_666;
const START_MS = 1_000_000;
const MS_PER_SECOND = 1_000;
const KILLED = 137;
/** Length of a process's name in the kernel. */
const COMM_LENGTH = 15;
const VARIANTS: readonly Variant[] = ["nft", "legacy"];
const STAGE_ADDRESSES: readonly HostAddress[] = FAMILIES.flatMap((family) =>
  HOST_ADDRESSES[family].map((ip, index) => ({ ip, prefixLength: family === "IPv4" ? 16 : 64, link: index === 0 ? "lo" : UPLINK })),
);
const SYSCTLS: Readonly<Record<string, string>> = {
  "net.ipv4.conf.all.route_localnet": "0",
  "net.ipv4.ip_forward": "1",
  "net.ipv6.conf.all.forwarding": "1",
  "net.netfilter.nf_conntrack_tcp_be_liberal": "0",
};

/** What the host is like at the start. */
export interface IptablesFakeHostOptions {
  /** What `iptables` is; default `nft`. Others and kubelet have written theirs with it. */
  readonly variant?: Variant;
  /** Whether kubelet has written its chains, KUBE-FIREWALL among them; default true. */
  readonly hasKubelet?: boolean;
}

/** The iptables backend's host in memory, with more to look at than the kit needs. */
export interface IptablesFakeHost extends FakeHost {
  readonly sysctl: FakeSysctl;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
  /** Somebody else runs one of the programs, e.g. `iptables-nft-restore --noflush`. */
  run(command: string, input?: string): Promise<ExecResult>;
  /** Somebody takes the lock that legacy tools wait for; call what it gives to let it go. */
  holdLock(): () => void;
}

/**
 * Make a host with iptables, ip6tables and a kernel that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1 and with rules of others. Both variants are there, each with rules of its own, and both
 * act on packets. It knows the matches and targets that kube-proxy uses and what a foreign hand is likely to; others are refused as not
 * installed.
 * Edges: it behaves like iptables 1.8.9 on Linux 6.18, checked against them by `real-iptables.test.ts`. UDP flows don't time out: their clients
 * are taken to keep them alive. Nothing is counted. There are no routes; see {@link tracePacket}.
 */
export function createFakeHost(options: IptablesFakeHostOptions = {}): IptablesFakeHost {
  return new FakeIptablesHost(options);
}

class FakeIptablesHost implements IptablesFakeHost {
  readonly world: World;
  readonly sysctl: FakeSysctl = createFakeSysctl(SYSCTLS);
  readonly #sets: readonly RuleSet[] = VARIANTS.flatMap((variant) =>
    FAMILIES.map((family): RuleSet => ({ variant, family, tables: new Map() })),
  );
  readonly #plain: Variant;
  readonly #recents = new RecentLists();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink: FakeNetlink = createFakeNetlink();
  readonly #log = createFakeLog();
  #local: ReadonlySet<string> = new Set();
  #fault: Fault | undefined;
  #refused: readonly string[] = [];
  #changes = 0;
  /** Resolves when the lock is free. */
  #lock: Promise<void> | undefined;

  constructor({ variant = "nft", hasKubelet = true }: IptablesFakeHostOptions) {
    this.#plain = variant;
    const exec = createIptablesExec(variant, this.sysctl, (program, args, options) => this.#runOwn(program, args, options));
    this.world = { exec, netlink: this.#netlink, clock: this.#clock, log: this.#log };
    this.setAddresses(STAGE_ADDRESSES);
    for (const family of FAMILIES) {
      this.#write(variant, family, FOREIGN_RULES[family]);
      if (hasKubelet) this.#write(variant, family, KUBELET_RULES[family]);
    }
  }

  get lines(): readonly string[] {
    return this.#log.lines;
  }

  get flows(): readonly Flow[] {
    return flowsOf(this.#netlink);
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#local = new Set(addresses.map(({ ip }) => ip));
    for (const family of FAMILIES) {
      this.#netlink.setAddresses(
        family,
        addresses.filter(({ ip }) => familyOf(ip) === family),
      );
    }
  }

  trace(packet: Packet, random: () => number): Trace {
    return this.#recents.withoutTraces(() => this.#follow(packet, random));
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.#follow(packet, random);
    if (trace.is === "forward" || trace.is === "pass") rememberFlow(this.#netlink, packet, trace.endpoint);
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.#fault = fault;
    this.#changes = 0;
  }

  refuse(addresses: readonly string[]): void {
    this.#refused = addresses;
  }

  tamper(random: () => number): string | undefined {
    const deed = tamperWith(this.#sets, random);
    if (deed === undefined) return undefined;
    const { variant, family } = deed.rules;
    this.#write(variant, family, deed.input);
    return `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore: ${deed.input.trimEnd().replaceAll("\n", "; ")}`;
  }

  own(): readonly string[] {
    return this.#sets.flatMap((rules) => linesOf(rules, "own"));
  }

  foreign(): readonly string[] {
    return this.#sets.flatMap((rules) => linesOf(rules, "foreign"));
  }

  run(command: string, input: string = ""): Promise<ExecResult> {
    const [file = "", ...args] = command.split(" ");
    const exec = createIptablesExec(this.#plain, this.sysctl, (program, words, options) =>
      Promise.resolve(this.#commit(program, words, options.input ?? "", FOREIGN_PID)),
    );
    return exec.run(file, args, { input });
  }

  holdLock(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#lock = promise;
    return () => {
      this.#lock = undefined;
      resolve();
    };
  }

  #follow(packet: Packet, random: () => number): Trace {
    return tracePacket(packet, {
      ruleSets: this.#sets.filter(({ family }) => family === packet.family),
      routesLocalnet: this.sysctl.values.get("net/ipv4/conf/all/route_localnet") === "1",
      isLocal: (address) => this.#local.has(address) || (address.startsWith("127.") && this.#local.has("127.0.0.1")),
      random,
      nowMs: this.#clock.nowMs(),
      recents: this.#recents,
    });
  }

  /** What the backend runs; here is where it fails on command. */
  async #runOwn(program: Program, args: readonly string[], { input = "", signal }: ExecOptions): Promise<ExecResult> {
    const isLocked = await this.#waitForLock(program, args, signal);
    if (isLocked !== undefined) return isLocked;
    const fault = this.#fault;
    const noMemory = { code: 4, stdout: "", stderr: `${program.name}: Cannot allocate memory\n` };
    if (isChange(program, args) && this.#refused.some((address) => `${args.join(" ")} ${input}`.includes(address))) return noMemory;
    if (fault === undefined || !isChange(program, args)) return this.#commit(program, args, input, OWN_PID);
    if (this.#changes++ < fault.afterChanges) return this.#commit(program, args, input, OWN_PID);
    this.#fault = undefined;
    switch (fault.when) {
      case "before":
        return noMemory;
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
    await Promise.race([this.#lock.then(() => ending.abort()), this.#clock.sleep(seconds * MS_PER_SECOND, ending.signal)]);
    if (ending.signal.aborted) return undefined;
    const stopped = `Another app is currently holding the xtables lock. Stopped waiting after ${seconds}s.\n`;
    return { code: 4, stdout: "", stderr: `Can't lock /run/xtables.lock: Resource temporarily unavailable\n${stopped}` };
  }

  #commit(program: Program, args: readonly string[], input: string, pid: number): Answer {
    const { variant, family, name } = program;
    const rules = this.#rulesOf(variant, family);
    const hasLegacyTables = this.#rulesOf("legacy", family).tables.size > 0;
    const answer = runProgram(program, args, input, { rules, hasLegacyTables, nowMs: this.#clock.nowMs() });
    if (answer.committed.length > 0) this.#recents.keepOnly(() => this.#namedLists());
    for (const table of variant === "nft" ? answer.committed : []) {
      const tables = [`${family === "IPv4" ? "ip" : "ip6"} ${table}`];
      this.#netlink.commitNft({ pid, process: name.slice(0, COMM_LENGTH), tables });
    }
    return answer;
  }

  #write(variant: Variant, family: IPFamily, input: string): void {
    const name = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
    const { code, stderr } = this.#commit({ variant, family, does: "restore", name }, ["--noflush"], input, FOREIGN_PID);
    invariant(code === 0, `what others do goes through: ${input}: ${stderr}`);
  }

  #rulesOf(variant: Variant, family: IPFamily): RuleSet {
    const found = this.#sets.find((rules) => rules.variant === variant && rules.family === family);
    invariant(found !== undefined, "there are rules of both variants in both families");
    return found;
  }

  /** Lists of clients that some rule names. */
  #namedLists(): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { tables } of this.#sets)
      for (const chains of tables.values())
        for (const { entries } of chains.values())
          for (const { rule } of entries) for (const { recent } of rule.matches) if (recent !== undefined) names.add(recent);
    return names;
  }
}

/** Listings, checks and questions of version are no changes. */
function isChange({ does }: Program, args: readonly string[]): boolean {
  if (does === "restore") return !args.some((word) => ["-t", "--test", "-V", "--version"].includes(word));
  return does === "change" && args.some((word) => /^-[ADIRNFXP]$/.test(word));
}
