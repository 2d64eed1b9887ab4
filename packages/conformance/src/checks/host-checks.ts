import type { Abilities, BackendModule, FlowFilter, IPFamily } from "@turnout/core";
import { FAMILIES, isEqual } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import type { FakeHost, Fault, OptionalMember } from "../runner/fake-host.ts";
import { checkFacts } from "./watching/facts-checks.ts";
import type { Findings } from "./findings.ts";
import { Runner } from "../runner/runner.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { addressesOf, service, SERVICE_PORT, slices } from "../runner/short.ts";
import { stagePeer, STAGE_OBJECTS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";
import { checkCounts } from "./count-checks.ts";
import { checkLeft } from "./watching/left-checks.ts";
import { checkWatch } from "./watching/watch-checks.ts";
import { checkWrites } from "./write-checks.ts";

/** Longer than any wait after a failure. */
const REST_MS = 60_000;
/** Syncs in which all must be in force. */
const SYNCS = 3;
/** How often the foreign hand is asked: not all it does need show. */
const TAMPER_TRIES = 20;
/** How often objects are looked up, each time after another tampering. */
const LOOKUP_TRIES = 12;
const FAULTS: readonly Fault["when"][] = ["before", "during", "after"];

/**
 * Look whether a host shows what the kit believes it: everything it finds later, it finds by this host's word.
 *
 * Shape: family by family, on hosts of their own. What the host hides is a finding of kind `contract`.
 * Edges: a backend that can't be opened or synced is left to the scenarios, beyond the finding that says so. Where the dataplane lives in the
 * process, no foreign hand need reach it; where there is no UDP, no flows need be remembered.
 */
export async function checkHost(
  subject: Subject,
  setting: RunnerOptions,
  { findings, random, abilities }: { readonly findings: Findings; readonly random: () => number; readonly abilities: Abilities },
): Promise<void> {
  const { capabilities } = abilities;
  for (const family of FAMILIES.filter((one) => capabilities[one] === true)) {
    findings.checkpoint = { scenario: "the host in memory", step: "the start", rules: [] };
    const known = findings.list.length;
    const of: CheckOf = { module: subject.module, family, findings, random };
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.look());
    // Where nothing works anyway, nothing that fails tells anything.
    if (findings.list.slice(known).some(({ kind }) => kind === "error")) continue;
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.watch());
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.facts());
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.write());
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.lookUp());
    await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.left());
    await checkCounting(subject, { ...setting, families: [family] }, of);
    for (const when of FAULTS) await onNewHost(subject, { ...setting, families: [family] }, of, (check) => check.fail(when));
  }
}

/** What a host must have. A type tells it, but not everybody's compiler. */
const HOST_MEMBERS: Readonly<Record<Exclude<keyof FakeHost, OptionalMember>, "function" | "object">> = {
  world: "object",
  advance: "function",
  setAddresses: "function",
  trace: "function",
  connect: "function",
  flows: "object",
  setFault: "function",
  refuse: "function",
  tamper: "function",
  own: "function",
  external: "function",
};

/** Look whether a host has all its members; each that is missing is said once, and nothing can be played then. */
export function isWholeHost(createFakeHost: Subject["createFakeHost"], findings: Findings): boolean {
  findings.checkpoint = { scenario: "the host in memory", step: "the start", rules: [] };
  let host: FakeHost;
  try {
    host = createFakeHost();
  } catch (error) {
    findings.threw("createFakeHost()", "IPv4", error);
    return false;
  }
  const missing = Object.entries(HOST_MEMBERS).filter(([name, is]) => typeof host[name as keyof FakeHost] !== is);
  for (const [name, is] of missing) {
    const got = typeof host[name as keyof FakeHost];
    const expected = is === "function" ? "a function" : name === "flows" ? "a list" : "an object";
    findings.add({ kind: "contract", family: "IPv4", what: `the host's ${name}`, expected, got });
  }
  return missing.length === 0;
}

interface CheckOf {
  readonly module: BackendModule;
  readonly family: IPFamily;
  readonly findings: Findings;
  readonly random: () => number;
}

async function onNewHost(subject: Subject, setting: RunnerOptions, of: CheckOf, check: (check: HostCheck) => Promise<void>): Promise<void> {
  if (of.findings.isFull) return;
  try {
    const runner = await Runner.start(subject, setting, STAGE_OBJECTS);
    await check(new HostCheck(runner, of));
    await runner.close();
  } catch (error) {
    of.findings.threw("the host", of.family, error);
  }
}

/** Where a backend can count it is looked at with the options with which it does. */
async function checkCounting(subject: Subject, setting: RunnerOptions, of: CheckOf): Promise<void> {
  const { countingOptions } = subject.module;
  if (countingOptions === undefined) return of.findings.leaveOut("what is counted: the module has no countingOptions");
  const backendOptions = { ...setting.backendOptions, ...countingOptions };
  await onNewHost(subject, { ...setting, backendOptions }, of, (check) => check.count());
}

/** Looks at one host, while one family is kept in step on it. */
class HostCheck {
  readonly #runner: Runner;
  readonly #host: FakeHost;
  readonly #module: BackendModule;
  readonly #family: IPFamily;
  readonly #findings: Findings;
  readonly #random: () => number;
  /** Services made. */
  #count = 0;

  constructor(runner: Runner, of: CheckOf) {
    this.#runner = runner;
    this.#host = runner.host;
    this.#module = of.module;
    this.#family = of.family;
    this.#findings = of.findings;
    this.#random = of.random;
  }

  /** See what a host shows while nothing fails. */
  async look(): Promise<void> {
    if (this.#host.external().length === 0) this.#found("external() at the start", "something that isn't the backend's", "nothing");
    if (!(await this.#checkOwn())) return;
    await this.#checkFlows();
    this.#checkTamper();
  }

  /** See how much a small change writes. */
  async write(): Promise<void> {
    this.#addService();
    if (this.#host.written === undefined) return this.#findings.leaveOut("what a small change writes again: the host has no written()");
    if (!(await this.#isSynced())) return;
    await checkWrites(this.#runner, this.#host.written.bind(this.#host), (what, expected, got, details) =>
      this.#found(what, expected, got, details, ["R-58"]),
    );
  }

  /** See whether objects that are looked up are as observing says, whatever a foreign hand has done to them. */
  async lookUp(): Promise<void> {
    this.#addService();
    this.#addService();
    if (!(await this.#isSynced())) return;
    for (const life of this.#runner.processes) {
      const asked = await life.observed();
      for (let tries = 0; tries <= LOOKUP_TRIES; tries++) {
        const done = tries === 0 || this.#module.residence === "process" ? "nothing" : (this.#host.tamper(this.#random) ?? "nothing");
        const difference = await life.lookupDifference(asked);
        if (difference !== "") return this.#found("lookup() of all objects", "what observe() says of each", difference, [done]);
      }
    }
  }

  /** See whether what somebody else does is noticed. */
  async watch(): Promise<void> {
    this.#addService();
    if (await this.#isSynced()) await checkWatch(this.#runner, (...found) => this.#found(...found), this.#random);
  }

  /** See whether what it says of a foreign change is so. */
  async left(): Promise<void> {
    this.#addService();
    this.#addService();
    const isReported =
      this.#module.residence !== "process" &&
      (await this.#isSynced()) &&
      (await checkLeft(this.#runner, (...found) => this.#found(...found), this.#random));
    if (!isReported) this.#findings.leaveOut("what a foreign change left: watch() tells of none of it (left)");
  }

  /** See whether it counts what it should. */
  async count(): Promise<void> {
    const counted = this.#host.counted?.bind(this.#host);
    if (counted === undefined) this.#findings.leaveOut("whether counts() tell of connections: the host has no counted()");
    await checkCounts(this.#runner, { counted, random: this.#random }, (...found) => this.#found(...found));
  }

  /** See whether the backend hears of the host's addresses. */
  async facts(): Promise<void> {
    this.#addService();
    if (await this.#isSynced()) await checkFacts(this.#runner, (...found) => this.#found(...found));
  }

  /** Have a change fail. It must show: in an error, or, where a backend takes it calmly, in what is not yet in force. */
  async fail(when: Fault["when"]): Promise<void> {
    this.#addService();
    this.#host.setFault({ when, afterChanges: 0 });
    const reports = await this.#runner.sync();
    const failures = this.#runner.processes.flatMap(({ notes }) => notes.failures);
    const after = this.#host.own();
    this.#host.setFault(undefined);
    // How well it recovers is for histories to see.
    if (failures.length > 0 || reports.some(({ error }) => error !== undefined)) return;
    if ((await this.#isSynced()) && isEqual(after, this.#host.own()))
      this.#found(`a sync with a fault armed ${when} its first change`, "it fails", "it succeeds");
  }

  /** Says whether one can go on. */
  async #checkOwn(): Promise<boolean> {
    this.#addService();
    if (!(await this.#isSynced())) return false;
    const one = this.#host.own();
    if (one.length === 0) this.#found("own() after a sync with a Service", "what is in force", "nothing");
    this.#addService();
    if (!(await this.#isSynced())) return false;
    if (one.length > 0 && isEqual(this.#host.own(), one))
      this.#found("own() after a sync with another Service", "more than before", "the same");
    return true;
  }

  async #checkFlows(): Promise<void> {
    if (this.#runner.abilities.capabilities.UDP !== true) return;
    const { addresses, link } = stagePeer("client1");
    const family = this.#family;
    const destination = addressesOf(1, "clusterIP")[family];
    const packet: Packet = { family, protocol: "UDP", source: addresses[family], destination, port: SERVICE_PORT, link };
    // Where it doesn't go is for the scenarios to judge.
    if (this.#host.trace(packet, this.#random).is !== "forward") return;
    const before = this.#host.flows.length;
    const { is } = this.#host.connect(packet, this.#random);
    if (is !== "forward") this.#found("connect() of a UDP packet", "forward, as trace() says", is);
    else if (this.#host.flows.length <= before) this.#found("flows after a UDP connection", "one more", "no more than before");
    const kept = this.#host.flows.length;
    const flows: readonly FlowFilter[] = [{ protocol: "UDP", address: destination, port: SERVICE_PORT, keep: [] }];
    for (const life of this.#runner.processes) await life.forgetInVain(flows);
    if (this.#host.flows.length < kept)
      this.#found("forgetFlows() with a signal that has aborted", "nothing is forgotten", "flows are gone");
  }

  #checkTamper(): void {
    if (this.#module.residence === "process") return;
    const before = this.#host.own();
    const tamperings: string[] = [];
    for (let tries = 0; tries < TAMPER_TRIES; tries++) {
      const tampering = this.#host.tamper(this.#random);
      if (tampering === undefined) continue;
      tamperings.push(tampering);
      if (!isEqual(this.#host.own(), before)) return;
    }
    if (tamperings.length === 0) this.#found("tamper() with something in force", "what was done", `nothing, ${TAMPER_TRIES} times`);
    else if (before.length > 0) this.#found("own() after tamper()", "other than before", "the same", tamperings);
  }

  #addService(): void {
    this.#count++;
    const name = `web-${this.#count}`;
    for (const raw of [service(name, { number: this.#count }), ...slices(name, ["pod-1-1", "pod-2-1"])]) this.#runner.put(raw);
  }

  /** Sync until all is in force; what still fails then is a finding, and the host can't be judged. */
  async #isSynced(): Promise<boolean> {
    let errors: readonly unknown[] = [];
    for (let tries = 0; tries < SYNCS; tries++) {
      errors = (await this.#runner.sync()).flatMap(({ error }) => (error === undefined ? [] : [error]));
      if (errors.length === 0) return true;
      await this.#host.advance(REST_MS);
    }
    for (const error of errors.slice(0, 1)) this.#findings.threw("sync", this.#family, error);
    return false;
  }

  #found(what: string, expected: string, got: string, details: readonly string[] = [], rules: readonly string[] = []): void {
    this.#findings.add({ kind: "contract", family: this.#family, what, expected, got, details, rules });
  }
}
