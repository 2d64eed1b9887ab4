import { FAMILIES } from "@turnout/core";
import { isFixed } from "../oracle/affinity-of.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import type { Fault } from "../runner/fake-host.ts";
import type { Findings } from "../checks/findings.ts";
import { differenceOf, wrongFlows } from "../checks/health-checks.ts";
import type { HistoryOptions } from "./history-options.ts";
import { judgePacket } from "../checks/judge.ts";
import { Runner } from "../runner/runner.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { createRandom, pickOne } from "@turnout/core/testing";
import { randomEvent, randomPacket, randomSettings, SERVERS } from "./random-objects.ts";
import type { ClusterEvent } from "./random-objects.ts";
import { placeNameOf, STAGE_NODE, STAGE_OBJECTS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";
import { deltaText } from "../runner/watched-backend.ts";

/** Longer than any wait after a failure, and than any affinity. */
const REST_MS = 60_000;
/** Syncs after the last fault in which a host must have recovered. */
const RECOVERY_SYNCS = 5;
/** Packets looked at, per family and look. */
const PACKETS = 8;
/** What happened last is told with a finding. */
const REMEMBERED = 12;

/** One host's life under random changes and faults. */
export class HistoryRun {
  /** Changes made. */
  steps = 0;
  /** Close looks taken. */
  looks = 0;
  packets = 0;
  readonly #subject: Subject;
  readonly #seed: number;
  readonly #findings: Findings;
  readonly #random: () => number;
  readonly #setting: RunnerOptions;
  readonly #happened: string[] = [];
  readonly #looksAtPackets: boolean;
  readonly #watchesFlows: boolean;
  readonly #asksTwice: boolean;
  /** Since something was made to fail until all is well again, syncs may fail. */
  #isDisturbed = false;
  #dies = false;
  #hostAddresses: ClusterEvent["hostAddresses"];
  /** What was wanted when all was last in force; undefined: since then more than objects changed. */
  #active: OracleWorld | undefined;

  constructor(subject: Subject, seed: number, findings: Findings, options: HistoryOptions) {
    this.#subject = subject;
    this.#seed = seed;
    this.#findings = findings;
    this.#random = createRandom(seed);
    const { backendOptions, looksAtPackets = true } = options;
    this.#setting = {
      settings: randomSettings(this.#random),
      ...(backendOptions === undefined ? {} : { backendOptions }),
      families: pickOne([FAMILIES, ["IPv4"], ["IPv6"], ["IPv4"], ["IPv6"]] as const, this.#random),
    };
    this.#looksAtPackets = looksAtPackets;
    this.#watchesFlows = this.#chance(0.2) && looksAtPackets;
    this.#asksTwice = this.#chance(0.1);
  }

  /** Live for some steps, or until a finding ends it. Never throws: what throws is a finding. */
  async live(steps: number, pollEvery: number): Promise<void> {
    this.#checkpoint();
    try {
      const runner = await Runner.start(this.#subject, this.#setting, STAGE_OBJECTS);
      this.#newborn(runner);
      const known = this.#findings.list.length;
      while (this.steps < steps && this.#findings.list.length === known) {
        await this.#step(runner);
        if (this.steps % pollEvery === 0 || this.steps === steps) await this.#look(runner);
      }
      await runner.close();
    } catch (error) {
      this.#findings.threw("the history", "IPv4", error, this.#happened);
    }
  }

  async #step(runner: Runner): Promise<void> {
    // Rule R-56: where the host may be no endpoint, it is none, whatever its addresses are at the time.
    const mayServe = (name: string): boolean => runner.abilities.capabilities.hostEndpoints === true || name !== STAGE_NODE;
    const clusterEvent = randomEvent(this.#random, SERVERS.filter(mayServe));
    this.steps++;
    this.#checkpoint(clusterEvent.say);
    await this.#carryOut(runner, clusterEvent);
    if (this.#chance(0.04)) this.#setFault(runner);
    const isTampered = this.#chance(0.015);
    if (isTampered) this.#tamper(runner);
    if (this.#chance(0.006)) await this.#restart(runner);
    if (this.#chance(0.1)) await runner.host.advance(Math.floor(this.#random() * 5000));
    if (this.#chance(0.5)) await this.#sync(runner);
    if (this.#watchesFlows && !this.#isDisturbed && this.#chance(0.2)) this.#connect(runner);
    // What a foreign hand did is soon covered by changes.
    if (isTampered && this.#chance(0.25)) await this.#look(runner);
  }

  async #carryOut(runner: Runner, { put = [], remove = [], hostAddresses }: ClusterEvent): Promise<void> {
    for (const raw of put) runner.put(raw);
    for (const ref of remove) runner.remove(ref);
    // What a node port answers on changes with these: what becomes of flows then is nobody's rule.
    if ([...put, ...remove].some(({ kind }) => kind === "Node")) this.#active = undefined;
    if (hostAddresses === undefined) return;
    this.#hostAddresses = hostAddresses;
    this.#active = undefined;
    await runner.setHostAddresses(hostAddresses);
  }

  #setFault(runner: Runner): void {
    const fault: Fault = { when: pickOne(["before", "during", "after"], this.#random), afterChanges: Math.floor(this.#random() * 3) };
    runner.host.setFault(fault);
    this.#disturb(`fault ${fault.when} change ${fault.afterChanges}`);
    this.#dies = this.#chance(0.3);
    if (this.#dies) this.#happened.push("and the process dies of it");
  }

  #tamper(runner: Runner): void {
    this.#disturb(`foreign hand: ${runner.host.tamper(this.#random) ?? "nothing"}`);
    for (const life of runner.processes) life.audit();
  }

  async #restart(runner: Runner): Promise<void> {
    this.#happened.push("restart");
    // Where ending is a change of the host, it isn't the one that was to fail.
    if (this.#subject.module.residence === "process") runner.host.setFault(undefined);
    await runner.restart();
    this.#newborn(runner);
    this.#active = undefined;
  }

  async #sync(runner: Runner): Promise<void> {
    const before = this.#isDisturbed ? undefined : this.#active;
    const flows = before === undefined ? [] : [...runner.host.flows];
    for (const { life, error } of await runner.sync()) {
      if (this.#isDisturbed) continue;
      if (error !== undefined) this.#findings.threw("sync", life.family, error, this.#happened);
      for (const failure of life.notes.failures)
        if (failure.error !== error) this.#findings.threw(failure.call, life.family, failure.error, this.#happened);
    }
    this.#drainNotes(runner);
    if (runner.processes.some(({ isDead }) => isDead)) await this.#restart(runner);
    this.#active = this.#isDisturbed || !this.#watchesFlows ? undefined : runner.world;
    if (before === undefined || this.#active === undefined) return;
    for (const found of wrongFlows(runner, before, this.#active, flows)) this.#findings.add({ ...found, details: [...this.#happened] });
  }

  #drainNotes(runner: Runner): void {
    for (const { notes, family } of runner.processes) {
      for (const name of new Set(notes.impure))
        this.#findings.add({ kind: "contract", family, what: name, expected: "one answer to one question", got: "two" });
      notes.clear();
    }
  }

  #connect(runner: Runner): void {
    const family = pickOne(runner.processes, this.#random).family;
    runner.host.connect({ ...randomPacket(this.#random, family, runner.objects), protocol: "UDP" }, this.#random);
  }

  /** Let everything come to rest, and compare it with a host that was synced once. */
  async #look(runner: Runner): Promise<void> {
    this.looks++;
    runner.host.setFault(undefined);
    if (!(await this.#recover(runner))) return;
    for (const { life, put, removed, error } of await runner.sync()) {
      if (error !== undefined) this.#findings.threw("a second sync", life.family, error, this.#happened);
      if (put + removed > 0)
        this.#findings.add({
          kind: "not-idempotent",
          family: life.family,
          what: "a second sync",
          expected: "nothing to do",
          got: `${put} put, ${removed} removed`,
          details: [...life.notes.deltas.map(deltaText), ...this.#happened],
        });
    }
    this.#drainNotes(runner);
    await this.#compare(runner);
    const packets = this.#looksAtPackets ? PACKETS : 0;
    for (const { family } of runner.processes) for (let count = 0; count < packets; count++) this.#ask(runner, family);
    this.#isDisturbed = false;
    this.#active = this.#watchesFlows ? runner.world : undefined;
  }

  async #recover(runner: Runner): Promise<boolean> {
    let errors: readonly unknown[] = [];
    for (let tries = 0; tries < RECOVERY_SYNCS; tries++) {
      errors = (await runner.sync()).flatMap(({ error }) => (error === undefined ? [] : [error]));
      this.#drainNotes(runner);
      if (runner.processes.some(({ isDead }) => isDead)) await this.#restart(runner);
      // The last of these waits is for what lingers.
      await runner.host.advance(REST_MS);
      if (errors.length === 0 && tries > 0) return true;
    }
    for (const error of errors.slice(0, 1)) this.#findings.threw("recovery", "IPv4", error, this.#happened);
    return errors.length === 0;
  }

  async #compare(runner: Runner): Promise<void> {
    const fresh = await Runner.start(this.#subject, this.#setting, runner.objects);
    if (this.#hostAddresses !== undefined) await fresh.setHostAddresses(this.#hostAddresses);
    for (const { life, error } of await fresh.sync())
      if (error !== undefined) this.#findings.threw("a sync from nothing", life.family, error, this.#happened);
    await fresh.host.advance(REST_MS);
    await fresh.sync();
    const details = differenceOf(fresh.host.own(), runner.host.own());
    const external = differenceOf(fresh.host.external(), runner.host.external());
    await fresh.close();
    const family = runner.processes[0]?.family ?? "IPv4";
    const found = { family, got: `${details.length + external.length} differences`, details: [...details.slice(0, 8), ...this.#happened] };
    if (details.length > 0)
      this.#findings.add({ kind: "leftover", what: "what is in force", expected: "as after one sync from nothing", ...found });
    if (external.length > 0)
      this.#findings.add({ kind: "cleanup", what: "what isn't the backend's", expected: "as it was", ...found, details: external });
  }

  #ask(runner: Runner, family: "IPv4" | "IPv6"): void {
    const packet = randomPacket(this.#random, family, runner.objects);
    const { protocol, source, destination, port, link } = packet;
    // Who answers for addresses itself has them on the host, and no kernel lets a packet in that says it comes from one of its own.
    if (runner.abilities.capabilities.clientAddress !== true && link !== "" && placeNameOf(source) === source) return;
    // By now nobody is remembered.
    const question = { packet, verdict: verdictOf(runner.world, packet), remembered: undefined, isFixed: isFixed(runner.world, packet) };
    this.packets++;
    for (const complaint of judgePacket(runner.host, question, this.#random))
      this.#findings.add({
        ...complaint,
        family,
        protocol,
        what: `${source} → ${destination} port ${port}`,
        rules: complaint.rules.length === 0 ? this.#findings.checkpoint.rules : complaint.rules,
        details: [...complaint.details, ...this.#happened],
      });
  }

  #newborn(runner: Runner): void {
    for (const life of runner.processes) {
      life.notes.asksTwice = this.#asksTwice;
      life.notes.onFailure = (): void => {
        if (!this.#dies) return;
        this.#dies = false;
        life.kill();
      };
    }
  }

  #disturb(what: string): void {
    this.#isDisturbed = true;
    this.#happened.push(what);
  }

  #checkpoint(say: string = "the start"): void {
    this.#happened.push(`${this.steps}: ${say}`);
    this.#happened.splice(0, this.#happened.length - REMEMBERED);
    this.#findings.checkpoint = { scenario: `history ${this.#seed}`, step: `change ${this.steps}: ${say}`, rules: ["R-58"] };
  }

  #chance(of: number): boolean {
    return this.#random() < of;
  }
}
