import { FAMILIES, operatingError } from "@turnout/core";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import { checkEnd } from "./ending.ts";
import type { Fault } from "../play/fake-host.ts";
import { failingObject, isOfKit } from "../breakages/failing-object.ts";
import type { Findings, Found } from "./findings.ts";
import { judgePacket } from "./judge.ts";
import { Player, protocolsOf } from "../play/player.ts";
import type { PlayerOptions } from "../play/player.ts";
import { packetOf } from "../play/probe-packet.ts";
import { addressesOf, refs, service, slices } from "../play/short.ts";
import { HOST_ADDRESSES, STAGE_OBJECTS } from "../play/stage.ts";
import type { Subject } from "../play/subject.ts";
import { UnderWay } from "./under-way.ts";
import type { WatchedPacket } from "./under-way.ts";

/** Longer than any wait after a failure. */
const REST_MS = 60_000;
/** Calls of the tool by a first sync after which the kit no longer believes that faults reach it. */
const CALLS_MAX = 50;
/** Syncs in which a host must have recovered from one fault. */
const SYNCS = 3;
const FAULTS: readonly Fault["when"][] = ["before", "during", "after"];
/** What one thing costs others. */
const ISOLATION: readonly string[] = ["R-55"];
/** What a failure leaves behind. */
const RECOVERY: readonly string[] = ["R-58"];
/** Services that work all the time, by number. */
const WORKING = [1, 2, 3];
/** The Service that is in trouble; its number is in no other address of the stage. */
const TROUBLED = 77;
const LATER = 5;
const NODE_RANGES: readonly string[] = ["172.18.0.0/16", "fd00:18::/64"];

/** With what the checks are made. */
interface Desk {
  readonly subject: Subject;
  readonly setting: PlayerOptions;
  readonly findings: Findings;
  readonly random: () => number;
  /** What a packet that suffers offends against. */
  readonly rules: readonly string[];
  /** How many findings there were at the start. */
  readonly known: number;
}

/**
 * Look whether trouble with one thing costs others anything: at every moment packets of rows that work are answered.
 *
 * Shape: on hosts of their own, a restart with a row that the host refuses, one fault at each call of the first sync of a restart (those that
 * change something, and those that read what is there), and an
 * object (of a row, of the skeleton) that fails for ever.
 * Edges: what isn't right without trouble is left to the scenarios. One kind of trouble that others pay for is enough.
 */
export async function checkRecovery(
  subject: Subject,
  setting: PlayerOptions,
  { findings, random }: { readonly findings: Findings; readonly random: () => number },
): Promise<void> {
  const desk: Desk = { subject, setting, findings, random, rules: ISOLATION, known: findings.list.length };
  await onHost(desk, "a restart with a row that the host refuses", (run) => run.refuseRow());
  for (const when of FAULTS) await failEachCall({ ...desk, rules: RECOVERY }, when);
  await failEachReading({ ...desk, rules: RECOVERY });
  for (const owner of ["row", "skeleton"] as const) {
    const failing = { ...desk, subject: failingObject(subject, owner, nameOf(TROUBLED)), setting: onAllOf(NODE_RANGES, setting) };
    await onHost(failing, `an object of the ${owner} that fails for ever`, (run) => run.failForEver());
  }
}

async function failEachReading(desk: Desk): Promise<void> {
  let isReached = true;
  for (let afterCalls = 0; isReached && afterCalls < CALLS_MAX; afterCalls++) {
    isReached = false;
    await onHost(desk, `a restart whose first sync fails at call ${afterCalls + 1} that reads`, async (run) => {
      isReached = await run.failReading(afterCalls);
    });
  }
}

async function failEachCall(desk: Desk, when: Fault["when"]): Promise<void> {
  let isReached = true;
  for (let afterChanges = 0; isReached && afterChanges < CALLS_MAX; afterChanges++) {
    isReached = false;
    await onHost(desk, `a restart whose first sync fails ${when} change ${afterChanges + 1}`, async (run) => {
      isReached = await run.failOnce({ when, afterChanges });
    });
  }
}

async function onHost(desk: Desk, name: string, check: (run: RecoveryRun) => Promise<void>): Promise<void> {
  const { findings, subject, setting, rules } = desk;
  if (findings.list.length > desk.known) return;
  findings.checkpoint = { scenario: name, step: "the start", rules };
  const start = (objects = STAGE_OBJECTS): Promise<Player> => Player.start(subject, setting, objects);
  try {
    const player = await start();
    const run = new RecoveryRun(player, desk, name);
    if (await run.isUp()) await check(run);
    await player.close();
  } catch (error) {
    findings.threw("the host", "IPv4", error);
  }
}

/** One host in trouble. */
class RecoveryRun {
  readonly #player: Player;
  readonly #desk: Desk;
  readonly #name: string;

  constructor(player: Player, desk: Desk, name: string) {
    this.#player = player;
    this.#desk = desk;
    this.#name = name;
  }

  /** Put Services in force that work. False: they don't, and nothing can be told. */
  async isUp(): Promise<boolean> {
    const player = this.#player;
    for (const number of WORKING) this.#put(number);
    const reports = await player.sync();
    return reports.every(({ error }) => error === undefined || isOfKit(error)) && this.#complaints(player.world, WORKING).length === 0;
  }

  /** A new row, and a new form of one that is in force, can't be programmed; a Service that comes later can. */
  async refuseRow(): Promise<void> {
    const { host } = this.#player;
    const before = this.#player.world;
    const own = addressesOf(TROUBLED, "clusterIP");
    const refused = addressesOf(TROUBLED, "externalIP");
    host.refuse(FAMILIES.flatMap((family) => [own[family], refused[family]]));
    this.#put(TROUBLED);
    this.#put(1, { externalIPs: FAMILIES.map((family) => refused[family]) });
    await this.#restart();
    this.#checkpoint("the first sync of the new process");
    const isRefused = (await this.#syncAndLook(before, before, WORKING)).some(({ error }) => error !== undefined);
    if (!isRefused) this.#found("a sync with a row that the host refuses", "it says so", "it succeeds");
    this.#checkpoint("a Service comes while the row is refused");
    this.#put(LATER);
    await this.#syncAndLook(before, { ...before, objects: [...before.objects, ...objectsOf(LATER)] }, [...WORKING, LATER]);
    this.#checkpoint("Services of the same shape go while the row is refused");
    for (const number of [2, 3, LATER]) for (const ref of refs(nameOf(number))) this.#player.remove(ref);
    await this.#player.sync();
    this.#judge(before, [1]);
    host.refuse([]);
    await this.#recover([1, TROUBLED]);
  }

  /** Something changes while no process runs, and the new one can't read what is there when it first tries. Says whether that was reached. */
  async failReading(afterCalls: number): Promise<boolean> {
    const player = this.#player;
    const before = await this.#changeUnseen();
    player.failReading(afterCalls);
    await this.#syncAndLook(before, player.world, [1, 2]);
    const wasReached = !player.willFailReading;
    player.failReading(undefined);
    if (wasReached) await this.#recover([1, 2, LATER]);
    return wasReached;
  }

  /** One Service comes and one goes between the end of a process and the first sync of the next; gives what was wanted before. */
  async #changeUnseen(): Promise<OracleWorld> {
    const before = this.#player.world;
    this.#put(LATER);
    for (const ref of refs(nameOf(3))) this.#player.remove(ref);
    await this.#restart();
    this.#checkpoint("the first sync of the new process");
    return before;
  }

  /** As {@link RecoveryRun.failReading}, where a change fails. */
  async failOnce(fault: Fault): Promise<boolean> {
    const player = this.#player;
    const before = await this.#changeUnseen();
    player.host.setFault(fault);
    const reports = await this.#syncAndLook(before, player.world, []);
    player.host.setFault(undefined);
    if (reports.every(({ error }) => error === undefined) && player.processes.every(({ notes }) => notes.failures.length === 0))
      return false;
    await this.#recover([1, 2, LATER]);
    return true;
  }

  /** One object is never in force; everything else is, and what changes later comes into force. */
  async failForEver(): Promise<void> {
    const player = this.#player;
    const before = player.world;
    this.#put(TROUBLED);
    await this.#restart();
    this.#checkpoint("the first sync of the new process");
    await this.#syncAndLook(before, player.world, [...WORKING, TROUBLED]);
    const between = player.world;
    this.#checkpoint("a Service comes, and the host gets another address");
    this.#put(LATER);
    await player.setHostAddresses(withOneMore(HOST_ADDRESSES));
    await this.#syncAndLook(between, player.world, [...WORKING, TROUBLED, LATER]);
    this.#checkpoint("what failed is tried again");
    await player.host.advance(REST_MS);
    await this.#syncAndLook(player.world, player.world, [...WORKING, TROUBLED, LATER]);
  }

  /** Sync until all is in force, and see that it is as after one sync from nothing. */
  async #recover(working: readonly number[]): Promise<void> {
    const { findings, subject, setting } = this.#desk;
    const player = this.#player;
    this.#checkpoint("afterwards");
    for (let tries = 1; tries < SYNCS; tries++) {
      await player.host.advance(REST_MS);
      await player.sync();
    }
    for (const { notes } of player.processes) notes.clear();
    await checkEnd(player, () => Player.start(subject, setting, player.objects), findings);
    this.#judge(player.world, working);
  }

  /** Sync; the packets of Services that work before and after are followed all the while, those of `working` at rest. */
  async #syncAndLook(before: OracleWorld, after: OracleWorld, working: readonly number[]): ReturnType<Player["sync"]> {
    const { findings, random } = this.#desk;
    const player = this.#player;
    const underWay = new UnderWay(player.host, { before, after, packets: this.#packets([1, 2]) }, random);
    player.onToolCall = (): void => underWay.look();
    const reports = await player.sync();
    player.onToolCall = undefined;
    for (const { error } of reports) this.#checkError(error);
    for (const { notes } of player.processes) for (const { error } of notes.failures) this.#checkError(error);
    for (const found of underWay.found()) findings.add({ ...found, rules: this.#desk.rules });
    this.#judge(after, working);
    return reports;
  }

  #judge(world: OracleWorld, numbers: readonly number[]): void {
    for (const found of this.#complaints(world, numbers)) this.#desk.findings.add(found);
  }

  #complaints(world: OracleWorld, numbers: readonly number[]): readonly Found[] {
    return this.#packets(numbers).flatMap(({ what, packet }) => {
      const { family, protocol } = packet;
      const question = { packet, verdict: verdictOf(world, packet), remembered: undefined };
      return judgePacket(this.#player.host, question, this.#desk.random).map((complaint) => ({
        ...complaint,
        family,
        protocol,
        what,
        rules: this.#desk.rules,
      }));
    });
  }

  /** What lives in the process ends with it: there the same happens to a process that lives on. */
  async #restart(): Promise<void> {
    if (this.#desk.subject.module.residence === "kernel") await this.#player.restart();
  }

  #packets(numbers: readonly number[]): readonly WatchedPacket[] {
    const player = this.#player;
    const asked = [
      { from: "pod-1-3", way: "clusterIP" },
      { from: "client1", way: "nodePort@node1" },
    ];
    return numbers.flatMap((number) =>
      player.processes.flatMap(({ family }) =>
        protocolsOf(player.abilities, ["TCP", "UDP"]).flatMap((protocol) =>
          asked.map(({ from, way }) => {
            const to = `${nameOf(number)} ${way}`;
            return {
              what: `${from} → ${to} ${family} ${protocol}`,
              packet: packetOf({ from, to, sees: "" }, family, protocol, player.services),
            };
          }),
        ),
      ),
    );
  }

  /** Operating errors are ours to handle; whatever else is thrown ends the process. */
  #checkError(error: unknown): void {
    if (error === undefined || operatingError(error) !== undefined) return;
    this.#desk.findings.add({
      kind: "error",
      family: "IPv4",
      what: "what is thrown when a tool fails",
      expected: "a ProxyError",
      got: error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error),
      details: [],
    });
  }

  #put(number: number, spec: Readonly<Record<string, unknown>> = {}): void {
    for (const raw of objectsOf(number, spec)) this.#player.put(raw);
  }

  #checkpoint(step: string): void {
    this.#desk.findings.checkpoint = { scenario: this.#name, step, rules: this.#desk.rules };
  }

  #found(what: string, expected: string, got: string): void {
    this.#desk.findings.add({ kind: "contract", family: "IPv4", what, expected, got, details: [] });
  }
}

function nameOf(number: number): string {
  return `web-${number}`;
}

function objectsOf(number: number, spec: Readonly<Record<string, unknown>> = {}): ReturnType<typeof slices> {
  const name = nameOf(number);
  return [service(name, { number, ways: ["nodePort"], spec: { ...spec, type: "NodePort" } }), ...slices(name, ["pod-1-1", "pod-2-1"])];
}

/** Node ports on all of the host's addresses that are in these ranges: then another address changes what is there whatever the Services are. */
function onAllOf(ranges: readonly string[], setting: PlayerOptions): PlayerOptions {
  return { ...setting, settings: { ...setting.settings, nodePortAddresses: ranges } };
}

function withOneMore(addresses: typeof HOST_ADDRESSES): typeof HOST_ADDRESSES {
  return { IPv4: [...addresses.IPv4, "172.18.0.101"], IPv6: [...addresses.IPv6, "fd00:18::101"] };
}
