import { nftStatementText } from "@turnout/host/nft-statement";
import { spawn, spawnSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { FAMILIES, familyOf } from "@turnout/core";
import type { FakeHost, Fault, Flow, Trace } from "@turnout/conformance";
import type { Exec, ExecResult, StartedCommand } from "@turnout/core";
import { createRandom, SHOWCASE, TestClock } from "@turnout/core/testing";
import { checkHistories } from "@turnout/conformance";
import { createExec, OwnCommits } from "@turnout/host";
import type { HostAddress, LinuxWorld } from "@turnout/host";
import { createFakeLog, createFakeNetlink, nftTableIn } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, describe, expect, it } from "vitest";
import { NftSession } from "@turnout/host/nft";
import { tamperWith } from "./test-support/kernel-histories-hand.ts";
import { linesOf, parseListed } from "./test-support/kernel-histories-listing.ts";
import type { Listed } from "./test-support/kernel-histories-listing.ts";
import { nftModule } from "./module.ts";
import { TABLE } from "./names.ts";
import { EXTERNAL_RULESET } from "./testing/external-ruleset.ts";
import { openProxy } from "./test-support/states.ts";

/** Random changes; set TURNOUT_KERNEL_STEPS for more, and TURNOUT_HISTORY_SEED to begin elsewhere: `history 17` is seed 17, 50 steps. */
const STEPS = Number(process.env["TURNOUT_KERNEL_STEPS"] ?? 200);
const SEED = Number(process.env["TURNOUT_HISTORY_SEED"] ?? 1);
const TIMEOUT_MS = 120_000;
/** What nft prints when the kernel has no memory for a transaction. */
const NO_MEMORY = "Error: Could not process rule: Cannot allocate memory\n";
const KILLED = 137;

/** Run a program to its end. @throws {Error} with what it complained about. */
function runNow(file: string, args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8", input });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")}: ${input}: ${stderr}`);
  return stdout;
}

/** Name the network namespace of a process. @throws {Error} when there is no such process. */
function networkOf(pid: number | undefined): string {
  return readlinkSync(`/proc/${pid}/ns/net`);
}

/** nft and the kernel themselves, in a network namespace of its own. Packets can't be followed in it. */
class KernelHost implements FakeHost {
  readonly flows: readonly Flow[] = [];
  readonly world: LinuxWorld;
  /** Holds the network namespace, which is gone when it ends: at the latest when this process does, however that ends. */
  readonly #holder = spawn("unshare", ["--net", "cat"], { stdio: ["pipe", "ignore", "ignore"] });
  readonly #exec = createExec();
  readonly #started = new Set<StartedCommand>();
  readonly #clock = new TestClock(1_000_000);
  readonly #netlink = createFakeNetlink();
  #fault: Fault | undefined;
  #changes = 0;

  constructor() {
    const tables = nftTableIn(`/proc/${this.#holder.pid}/ns/net`);
    this.world = { exec: this.#execInside(), clock: this.#clock, netlink: { ...this.#netlink, ...tables }, log: createFakeLog() };
    while (networkOf(this.#holder.pid) === networkOf(process.pid)) runNow("sleep", ["0.001"]);
    this.#nft(["-f", "-"], `${EXTERNAL_RULESET.map(nftStatementText).join("\n")}\n`);
  }

  close(): void {
    for (const started of this.#started) started.close();
    this.#holder.stdin.end();
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    for (const family of FAMILIES) {
      const own = addresses.filter(({ ip }) => familyOf(ip) === family);
      this.#netlink.setAddresses(family, own);
    }
  }

  trace(): Trace {
    throw new Error("packets can't be followed through the kernel");
  }

  connect(): Trace {
    throw new Error("packets can't be followed through the kernel");
  }

  setFault(fault: Fault | undefined): void {
    this.#fault = fault;
    this.#changes = 0;
  }

  refuse(): void {
    throw new Error("histories have single faults only");
  }

  own(): readonly string[] {
    return linesOf(this.#list().filter(({ table }) => table === TABLE));
  }

  external(): readonly string[] {
    return linesOf(this.#list().filter(({ table }) => table !== TABLE));
  }

  tamper(random: () => number): string | undefined {
    const text = tamperWith(this.#list(), random);
    if (text === undefined) return undefined;
    this.#nft(["-f", "-"], `${text}\n`);
    return text;
  }

  #list(): readonly Listed[] {
    return parseListed(this.#nft(["-j", "list", "ruleset"]));
  }

  #nft(args: readonly string[], input?: string): string {
    return runNow("nsenter", this.#inside("nft", args), input);
  }

  #inside(file: string, args: readonly string[]): readonly string[] {
    return [`--net=/proc/${this.#holder.pid}/ns/net`, file, ...args];
  }

  /** When the change that the backend is about to make fails; undefined: it doesn't. */
  #consumeFault(): Fault["when"] | undefined {
    const fault = this.#fault;
    if (fault === undefined || this.#changes++ < fault.afterChanges) return undefined;
    this.#fault = undefined;
    return fault.when;
  }

  #execInside(): Exec {
    const exec = this.#exec;
    return {
      run: (file, args, options) => exec.run("nsenter", this.#inside(file, args), options),
      open: (file, args): StartedCommand => {
        const started = exec.open("nsenter", this.#inside(file, args));
        this.#started.add(started);
        return { ...started, finish: (input, options) => this.#faulty(started, () => started.finish(input, options)) };
      },
    };
  }

  /** nft gets a transaction, and may be killed before or after it has done it. */
  async #faulty({ pid = 0 }: StartedCommand, commit: () => Promise<ExecResult>): Promise<ExecResult> {
    const when = this.#consumeFault();
    if (when === "before") return { code: 1, stdout: "", stderr: NO_MEMORY };
    if (when === "during") process.kill(pid, "SIGKILL");
    const result = await commit();
    return when === "after" ? { code: KILLED, stdout: "", stderr: "" } : result;
  }
}

describe("R-58 random histories on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  const hosts: KernelHost[] = [];
  afterAll(() => {
    for (const host of hosts) host.close();
  });
  const createHost = (): KernelHost => {
    const host = new KernelHost();
    hosts.push(host);
    return host;
  };

  it.each([
    { when: "before", isDone: false },
    { when: "during", isDone: false },
    { when: "after", isDone: true },
  ] as const)("can have a change fail $when it is done", async ({ when, isDone }) => {
    const host = createHost();
    const { signal } = new AbortController();
    const table = { family: "ip", name: "turnout" } as const;
    const chainNamed = (name: string) => ({ chain: { family: "ip", table: "turnout", name } }) as const;
    const session = new NftSession({ ...host.world, own: new OwnCommits(), table: "ip turnout" }, "nft");
    await session.commit([{ add: { table } }], signal);
    const [before, external] = [host.own(), host.external()];
    host.setFault({ when, afterChanges: 1 });
    await session.commit([{ add: chainNamed("layout-0") }], signal);
    await expect(session.commit([{ add: chainNamed("layout-5") }], signal)).rejects.toMatchObject({
      name: "ProxyError",
      code: "tool_failed",
    });
    const chains = ["layout-0", ...(isDone ? ["layout-5"] : [])];
    expect(
      host
        .own()
        .slice(0, -before.length)
        .map((line) => line.split(" ")[3]),
    ).toEqual(chains);
    await session.commit([{ delete: { table } }], signal);
    expect(host.own()).toEqual([]);
    expect(host.external()).toEqual(external);
    expect(external.length).toBeGreaterThan(10);
  });

  it.each(FAMILIES)(
    "begin on a host whose foreign hand changes something every time, and it is put back: %s",
    async (family) => {
      const host = createHost();
      const proxy = await openProxy(host.world, family);
      await proxy.sync(SHOWCASE);
      const [before, external] = [host.own(), host.external()];
      const random = createRandom(SEED);
      for (let count = 0; count < 30; count++) {
        const tampering = host.tamper(random);
        expect({ tampering, own: host.own() }).not.toEqual({ tampering, own: before });
        await proxy.adopt();
        await proxy.sync(SHOWCASE);
        expect({ tampering, own: host.own() }).toEqual({ tampering, own: before });
      }
      expect(host.external()).toEqual(external);
    },
    60_000,
  );

  it(
    `end where one sync from nothing ends, whatever happens: ${STEPS} changes from seed ${SEED}`,
    async () => {
      const options = { seed: SEED, steps: STEPS, lifeSteps: 50, pollEvery: 25, looksAtPackets: false };
      const { findings, steps, looks } = await checkHistories(nftModule, createHost, options);
      expect(findings).toEqual([]);
      expect(steps).toBe(STEPS);
      expect(looks).toBeGreaterThanOrEqual(STEPS / 25);
    },
    TIMEOUT_MS + STEPS * 500,
  );
});
