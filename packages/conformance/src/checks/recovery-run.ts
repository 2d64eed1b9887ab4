import { operatingError } from "@turnout/core";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import { isOfKit } from "../runner/failing-object.ts";
import { Runner, protocolsOf } from "../runner/runner.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { packetOf } from "../runner/probe-packet.ts";
import { service, slices } from "../runner/short.ts";
import { STAGE_OBJECTS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";
import { checkEnd } from "./ending.ts";
import type { Findings, Found } from "./findings.ts";
import { judgePacket } from "./judge.ts";
import { UnderWay } from "./under-way.ts";
import type { WatchedPacket } from "./under-way.ts";

/** Longer than any wait after a failure, in ms. */
export const REST_MS = 60_000;
/** Syncs in which a host must have recovered from one fault. */
const SYNCS = 3;
/** Services that work all the time, by number. */
export const WORKING: readonly number[] = [1, 2, 3];
/** The Service that is in trouble; its number is in no other address of the stage. */
export const TROUBLED = 77;
/** A Service that comes later. */
export const LATER = 5;

/** With what the checks of recovery are made. */
export interface RecoverySetting {
  readonly subject: Subject;
  readonly setting: RunnerOptions;
  readonly findings: Findings;
  readonly random: () => number;
  /** What a packet that suffers offends against. */
  readonly rules: readonly string[];
  /** How many findings there were at the start. */
  readonly known: number;
}

/**
 * Bring Services in force on a host of its own, and see what trouble costs them.
 *
 * Edges: nothing is tried where trouble was found already, or where they don't work without it.
 */
export async function onTroubledHost(given: RecoverySetting, name: string, check: (run: RecoveryRun) => Promise<void>): Promise<void> {
  const { findings, subject, setting, rules } = given;
  if (findings.isFull || findings.list.length > given.known) return;
  findings.checkpoint = { scenario: name, step: "the start", rules };
  const start = (objects = STAGE_OBJECTS): Promise<Runner> => Runner.start(subject, setting, objects);
  try {
    const runner = await start();
    const run = new RecoveryRun(runner, given, name);
    if (await run.isUp()) await check(run);
    await runner.close();
  } catch (error) {
    findings.threw("the host", "IPv4", error);
  }
}

/** One host in trouble: what all kinds of trouble are made and looked at with. */
export class RecoveryRun {
  readonly runner: Runner;
  readonly #given: RecoverySetting;
  readonly #name: string;

  constructor(runner: Runner, given: RecoverySetting, name: string) {
    this.runner = runner;
    this.#given = given;
    this.#name = name;
  }

  /** Put Services in force that work. False: they don't, and nothing can be told. */
  async isUp(): Promise<boolean> {
    const runner = this.runner;
    for (const number of WORKING) this.put(number);
    const reports = await runner.sync();
    return reports.every(({ error }) => error === undefined || isOfKit(error)) && this.#complaints(runner.world, WORKING).length === 0;
  }

  /** Sync until all is in force, and see that it is as after one sync from nothing. */
  async recover(working: readonly number[]): Promise<void> {
    const { findings, subject, setting } = this.#given;
    const runner = this.runner;
    this.checkpoint("afterwards");
    for (let tries = 1; tries < SYNCS; tries++) {
      await runner.host.advance(REST_MS);
      await runner.sync();
    }
    for (const { notes } of runner.processes) notes.clear();
    await checkEnd(runner, () => Runner.start(subject, setting, runner.objects), findings);
    this.judge(runner.world, working);
  }

  /** Sync; the packets of Services that work before and after are followed all the while, those of `working` at rest. */
  async syncAndLook(before: OracleWorld, after: OracleWorld, working: readonly number[]): ReturnType<Runner["sync"]> {
    const { findings, random } = this.#given;
    const runner = this.runner;
    const underWay = new UnderWay(runner.host, { before, after, packets: this.#packets([1, 2]) }, random);
    runner.onToolCall = (): void => underWay.look();
    const reports = await runner.sync();
    runner.onToolCall = undefined;
    for (const { error } of reports) this.#checkError(error);
    for (const { notes } of runner.processes) for (const { error } of notes.failures) this.#checkError(error);
    for (const found of underWay.found()) findings.add({ ...found, rules: this.#given.rules });
    this.judge(after, working);
    return reports;
  }

  judge(world: OracleWorld, numbers: readonly number[]): void {
    for (const found of this.#complaints(world, numbers)) this.#given.findings.add(found);
  }

  #complaints(world: OracleWorld, numbers: readonly number[]): readonly Found[] {
    return this.#packets(numbers).flatMap(({ what, packet }) => {
      const { family, protocol } = packet;
      const question = { packet, verdict: verdictOf(world, packet), remembered: undefined };
      return judgePacket(this.runner.host, question, this.#given.random).map((complaint) => ({
        ...complaint,
        family,
        protocol,
        what,
        rules: this.#given.rules,
      }));
    });
  }

  /** What lives in the process ends with it: there the same happens to a process that lives on. */
  async restart(): Promise<void> {
    if (this.#given.subject.module.residence === "kernel") await this.runner.restart();
  }

  #packets(numbers: readonly number[]): readonly WatchedPacket[] {
    const runner = this.runner;
    const asked = [
      { from: "pod-1-3", way: "clusterIP" },
      { from: "client1", way: "nodePort@node1" },
    ];
    return numbers.flatMap((number) =>
      runner.processes.flatMap(({ family }) =>
        protocolsOf(runner.abilities, ["TCP", "UDP"]).flatMap((protocol) =>
          asked.map(({ from, way }) => {
            const to = `${nameOf(number)} ${way}`;
            return {
              what: `${from} → ${to} ${family} ${protocol}`,
              packet: packetOf({ from, to, sees: "" }, family, protocol, runner.services),
            };
          }),
        ),
      ),
    );
  }

  /** Operating errors are ours to handle; whatever else is thrown ends the process. */
  #checkError(error: unknown): void {
    if (error === undefined || operatingError(error) !== undefined) return;
    this.#given.findings.add({
      kind: "error",
      family: "IPv4",
      what: "what is thrown when a tool fails",
      expected: "a ProxyError",
      got: error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error),
    });
  }

  put(number: number, spec: Readonly<Record<string, unknown>> = {}): void {
    for (const raw of objectsOf(number, spec)) this.runner.put(raw);
  }

  checkpoint(step: string): void {
    this.#given.findings.checkpoint = { scenario: this.#name, step, rules: this.#given.rules };
  }

  found(what: string, expected: string, got: string): void {
    this.#given.findings.add({ kind: "contract", family: "IPv4", what, expected, got });
  }
}

/** The name of a Service by its number. */
export function nameOf(number: number): string {
  return `web-${number}`;
}

/** The objects of one Service. */
export function objectsOf(number: number, spec: Readonly<Record<string, unknown>> = {}): ReturnType<typeof slices> {
  const name = nameOf(number);
  return [service(name, { number, ways: ["nodePort"], spec: { ...spec, type: "NodePort" } }), ...slices(name, ["pod-1-1", "pod-2-1"])];
}
