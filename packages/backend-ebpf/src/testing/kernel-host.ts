// A host of the conformance kit whose sockets, packets, programs and nft are this kernel's.
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { FaultSwitches, PLACES, STAGE_ADDRESSES, STAGE_NODE, UPLINK } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, HostAddress, Packet, Trace } from "@turnout/conformance";
import { hostPort, ProxyError } from "@turnout/core/backend";
import type { Exec } from "@turnout/core/backend";
import { TestClock } from "@turnout/core/testing";
import { createWorld } from "@turnout/host";
import type { BpfProbe } from "@turnout/host/bpf";
import { createFakeLog } from "@turnout/host/testing";
import { NFT_TABLE, REFUSED_MARK } from "../packets/nft-table.ts";
import { createEbpfWorld } from "../world.ts";
import type { EbpfWorld } from "../world.ts";
import { failingBpf } from "./failing-bpf.ts";
import { KernelMachine } from "./kernel-machine.ts";
import type { KernelStage } from "./kernel-stage.ts";
import { pinnedLines, tamperWith } from "./pinned-things.ts";

type ExecResult = Awaited<ReturnType<Exec["run"]>>;

const START_MS = 1_000_000;
/** How long netlink's notices of what was changed may take, on a machine that is busy. */
const NOTICE_MS = 100;
/** As a shell tells of SIGKILL. */
const KILLED: ExecResult = { code: 137, stdout: "", stderr: "" };
const NO_MEMORY: ExecResult = { code: 1, stdout: "", stderr: "Error: Could not process rule: Cannot allocate memory\n" };

/** The kernel stays what it is. */
let probed: Promise<BpfProbe> | undefined;

/** One host on a stage, until the stage is another's. Its clock alone is none of the kernel's. */
export class KernelHost implements FakeHost {
  readonly world: EbpfWorld & { close(): void };
  readonly #clock = new TestClock(START_MS);
  readonly #faults = new FaultSwitches();
  readonly #machine: KernelMachine;
  readonly #stage: KernelStage;
  #local: ReadonlySet<string> = new Set();
  #written = 0;
  #look: () => void = () => undefined;
  /** Something was changed of which netlink tells. */
  #hasNews = false;
  /** Our table of nft as nft lists it; undefined: it may have changed. */
  #table: string | undefined;

  constructor(stage: KernelStage, objectFiles: Partial<EbpfWorld["objectFiles"]>) {
    this.#stage = stage;
    this.#machine = new KernelMachine(stage);
    this.world = this.#createWorld(objectFiles);
    this.setAddresses(STAGE_ADDRESSES);
    // Nobody listens yet.
    this.#hasNews = false;
  }

  get flows(): readonly Flow[] {
    return this.#machine.flows;
  }

  /** How many packets were given to programs. */
  get questions(): number {
    return this.#machine.questions;
  }

  async advance(ms: number): Promise<void> {
    await this.#hearNews();
    await this.#clock.advance(ms);
    this.#machine.age(ms);
    await this.#hearNews();
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#local = new Set(addresses.map(({ ip }) => ip));
    this.#stage.setAddresses(addresses);
    this.#hasNews = true;
  }

  /** Who has a socket on this node asks at it first; what goes on is a packet. SCTP has no hooks. */
  trace(packet: Packet): Trace {
    return this.#follow(packet, false);
  }

  connect(packet: Packet): Trace {
    return this.#follow(packet, true);
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    this.#stage.enter();
    return tamperWith(this.#stage, random);
  }

  own(): readonly string[] {
    const table = this.#listTable();
    return [...pinnedLines(this.#stage, "own"), ...(table === "" ? [] : [table])];
  }

  external(): readonly string[] {
    return [...pinnedLines(this.#stage, "external"), ...this.#stage.otherTables()];
  }

  written(): number {
    return this.#written;
  }

  onChange(look: () => void): void {
    this.#look = look;
  }

  /** End what stays: the stage is another's now. */
  close(): void {
    this.#stage.enter();
    this.#machine.close();
    this.world.close();
  }

  #follow(packet: Packet, stays: boolean): Trace {
    const place = placeOf(packet.link);
    if (place === undefined || packet.protocol === "SCTP") return this.#pass(packet, stays, []);
    const fate = this.#machine.connectFrom(place, packet, stays);
    if (fate.is === "refused") return { is: "reject", path: [`the socket of ${place} is refused`] };
    const { address: destination, port } = fate;
    if (destination === packet.destination && port === packet.port)
      return this.#pass(packet, stays, [`the socket of ${place} keeps its address`]);
    const endpoint = hostPort(destination, port);
    // Programs of packets know it by its socket, and leave it alone (R-75); a packet that they are tried on has none. e2e/conformance.test.ts
    // shows it with real ones.
    return { is: "forward", endpoint, masquerade: false, path: [`the socket of ${place} gets ${endpoint}`] };
  }

  /** A packet meets the programs of the device by which it comes in or goes out, and the table of nft. */
  #pass(packet: Packet, stays: boolean, before: readonly string[]): Trace {
    const { link, destination, source } = packet;
    const isOut = link === "";
    // What the host sends to itself goes over lo.
    const device = isOut ? (this.#local.has(destination) ? "lo" : deviceTowards(destination)) : link;
    const { verdict, mark, flow } = this.#machine.receive(device, isOut ? "egress" : "ingress", packet, stays);
    const path = [...before, `${device}: ${verdict}${mark === 0 ? "" : `, mark 0x${mark.toString(16)}`}`];
    if (verdict === "shot") return { is: "drop", path };
    if (!isOut && mark === REFUSED_MARK && this.#listTable().includes(`meta mark 0x${mark.toString(16)} reject`))
      return { is: "reject", path: [...path, "nft refuses it"] };
    const endpoint = flow === undefined || !this.#rewrites() ? undefined : hostPort(flow.address, flow.port);
    if (stays && endpoint === undefined) this.#machine.note(packet);
    if (endpoint === undefined) return { is: "pass", path };
    return { is: "forward", endpoint, masquerade: flow?.source !== source, path: [...path, `NAT: ${endpoint}, from ${flow?.source}`] };
  }

  /** Whether the kernel rewrites packets by what conntrack knows: some chain is for NAT, and some rule asks conntrack. */
  #rewrites(): boolean {
    const table = this.#listTable();
    return table.includes("type nat hook postrouting") && table.includes("ct status dnat");
  }

  #listTable(): string {
    this.#stage.enter();
    return (this.#table ??= nft("-s", "list", "ruleset", "inet").match(new RegExp(`^table inet ${NFT_TABLE} \\{.*?^\\}`, "ms"))?.[0] ?? "");
  }

  #createWorld(objectFiles: Partial<EbpfWorld["objectFiles"]>): EbpfWorld & { close(): void } {
    const stage = this.#stage;
    const real = createEbpfWorld(createWorld({ log: createFakeLog() }));
    const bpf = failingBpf(stage.objects.bpf, {
      next: (named) => this.#faults.next(named),
      isRefused: (named) => this.#faults.isRefused(named),
      changed: (count) => this.#changed(count),
    });
    const netlink: EbpfWorld["netlink"] = {
      ...real.netlink,
      deleteNftTable: (family, table) => this.#dropTable(() => real.netlink.deleteNftTable(family, table)),
    };
    return {
      ...calledAt(stage, real),
      exec: this.#watchNft(real.exec),
      clock: this.#clock,
      log: createFakeLog(),
      bpf: calledAt(stage, bpf),
      netlink: calledAt(stage, netlink),
      objectFiles: { ...real.objectFiles, ...objectFiles },
      probeBpf: () => (probed ??= real.probeBpf()),
      mounts: () => ({ bpffs: stage.bpffs, cgroup2: stage.cgroup }),
      namespaces: () => stage.namespaces,
    };
  }

  /** Programs of the stage; what nft changes may fail. */
  #watchNft(exec: Exec): Exec {
    const stage = this.#stage;
    const changing = async (input: string, run: () => Promise<ExecResult>, checks = false): Promise<ExecResult> => {
      stage.enter();
      const isChange = !checks && /^\s*(?:add|delete) /.test(input);
      const when = isChange ? this.#faults.next(input) : undefined;
      if (when !== undefined && when !== "after") return when === "before" ? NO_MEMORY : KILLED;
      const result = await run();
      if (isChange) this.#tableChanged(result.code === 0 ? input.split("\n").length : 0);
      return when === "after" ? KILLED : result;
    };
    return {
      run: (file, args, options) => changing(options?.input ?? "", () => exec.run(file, args, options), args.includes("--check")),
      open(file, args) {
        stage.enter();
        const started = exec.open(file, args);
        return replacingFinish(started, (input, finish) => changing(input, finish));
      },
    };
  }

  async #dropTable(drop: () => Promise<void>): Promise<void> {
    const when = this.#faults.next([]);
    if (when === "before" || when === "during") throw new ProxyError("tool_failed", "a table can't be removed (ENOMEM)");
    await drop();
    this.#tableChanged(1);
    if (when === "after") throw new ProxyError("tool_failed", "a table was removed, and the answer is lost");
  }

  #tableChanged(statements: number): void {
    this.#table = undefined;
    this.#hasNews = true;
    this.#changed(statements);
  }

  #changed(count: number): void {
    this.#written += count;
    this.#look();
  }

  async #hearNews(): Promise<void> {
    if (!this.#hasNews) return;
    this.#hasNews = false;
    await sleep(NOTICE_MS);
  }
}

function replacingFinish(
  started: ReturnType<Exec["open"]>,
  finishing: (input: string, finish: () => Promise<ExecResult>) => Promise<ExecResult>,
): ReturnType<Exec["open"]> {
  return {
    pid: started.pid,
    close: () => started.close(),
    finish: (input, options) => finishing(input, () => started.finish(input, options)),
  };
}

/** The same tools, but for each call of a method this process enters the stage first. */
function calledAt<T extends object>(stage: KernelStage, tools: T): T {
  return new Proxy(tools, {
    get(_, name): unknown {
      const value: unknown = Reflect.get(tools, name, tools);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]): unknown => {
        stage.enter();
        return Reflect.apply(value, tools, args);
      };
    },
  });
}

function nft(...args: readonly string[]): string {
  return execFileSync("nft", args, { encoding: "utf8" });
}

/** Whose sockets send what comes in by a link of node1; undefined: nobody's here. */
function placeOf(link: string): string | undefined {
  if (link === "") return STAGE_NODE;
  return PLACES.find(({ kind, node, link: own }) => kind === "pod" && node === STAGE_NODE && own === link)?.name;
}

/** The device over which node1 reaches an address. */
function deviceTowards(address: string): string {
  const pod = PLACES.find(
    ({ node, kind, addresses }) => node === STAGE_NODE && kind === "pod" && Object.values(addresses).includes(address),
  );
  return pod?.link ?? UPLINK;
}
