import type { Abilities, BackendModule, IPFamily, Protocol } from "@turnout/core";
import { isEqual } from "@turnout/core";
import { isFixed } from "../oracle/affinity-of.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Flow, Packet } from "../oracle/packet.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import { AffinityBook } from "./affinity-book.ts";
import { checkCleanup, checkEnd } from "./ending.ts";
import { rulesAsked, type Cells, type Part } from "./cells.ts";
import type { Findings } from "./findings.ts";
import { checkExternal, checkRecognition, syncAndNote, wrongFlows } from "./health-checks.ts";
import { judgePacket } from "./judge.ts";
import { offendedByFlow, offendedIn } from "./offended.ts";
import { packetOf, probeText } from "../runner/probe-packet.ts";
import { REFERENCE_VARIANTS } from "../oracle/reference-variants.ts";
import { STAGE_SETTINGS } from "../runner/stage.ts";
import type { Runner } from "../runner/runner.ts";
import type { Probe, Scenario, Step } from "../runner/scenario.ts";
import { UnderWay } from "./under-way.ts";
import type { Applied, WatchedPacket } from "./under-way.ts";

interface Kept {
  readonly packet: Packet;
  readonly endpoint: string | undefined;
}

/** A packet that a step asks for. */
interface Asked extends WatchedPacket {
  readonly probe: Probe;
}

/** Whether the scenarios' words hold for a backend as they stand. */
export function isReference({ capabilities, variants }: Abilities): boolean {
  return Object.values(capabilities).every((one) => one === true) && isEqual(variants, REFERENCE_VARIANTS);
}

/** Plays one scenario on one host, in all families and protocols at once. */
export class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #rules: readonly string[];
  readonly #runner: Runner;
  readonly #parts: readonly Part[];
  readonly #module: BackendModule;
  readonly #findings: Findings;
  readonly #cells: Cells;
  readonly #random: () => number;
  /** The mark bit that the proxy is told to use. */
  readonly #ownBit: number;
  readonly #kept = new Map<string, Kept>();
  readonly #book = new AffinityBook();
  readonly #external: readonly string[];
  /** What is in force; undefined: who knows. */
  #active: Applied | undefined = "nothing";
  /** Packets of the last step that are looked at while the next change is under way. */
  #watched: readonly WatchedPacket[] = [];

  constructor(
    scenario: Scenario,
    of: {
      readonly runner: Runner;
      readonly parts: readonly Part[];
      readonly module: BackendModule;
      readonly findings: Findings;
      readonly cells: Cells;
      readonly random: () => number;
    },
  ) {
    this.#scenario = scenario;
    this.#rules = rulesAsked(scenario.rules, of.runner.abilities);
    this.#runner = of.runner;
    this.#parts = of.parts.filter(({ skipped }) => skipped === undefined);
    this.#module = of.module;
    this.#findings = of.findings;
    this.#cells = of.cells;
    this.#random = of.random;
    this.#ownBit = { ...STAGE_SETTINGS, ...scenario.settings }.masqueradeBit;
    this.#external = of.runner.host.external();
  }

  /** Play it to its end. */
  async execute(newRunner: () => Promise<Runner>): Promise<void> {
    const { name, steps } = this.#scenario;
    for (const step of steps) {
      this.#findings.checkpoint = { scenario: name, step: step.say, rules: this.#rules };
      await this.#runStep(step);
      if (this.#findings.isFull) return;
    }
    this.#findings.checkpoint = { scenario: name, step: "the end", rules: ["R-58"] };
    await checkEnd(this.#runner, newRunner, this.#findings);
    await checkCleanup(this.#runner, this.#module, this.#findings);
    checkExternal(this.#runner, this.#external, this.#findings);
  }

  async #runStep(step: Step): Promise<void> {
    const runner = this.#runner;
    if (step.waitSeconds !== undefined) await runner.host.advance(step.waitSeconds * 1000);
    if (step.restart === true) await this.#restart("restart");
    const before = runner.world;
    for (const raw of step.put ?? []) runner.put(raw);
    for (const ref of step.remove ?? []) runner.remove(ref);
    const asked = this.#packets(step.probes ?? []);
    const watched = oneByFamily(asked);
    this.#watched = [...this.#watched, ...watched];
    if (step.restart === "amid changes") await this.#restart("changes");
    else await this.#syncWithFlows(before);
    if (watched.length > 0) this.#watched = watched;
    await syncAndNote(runner, this.#findings, "again");
    for (const { kept, is } of step.flows ?? []) this.#checkKeptFlow(kept, is);
    for (const one of asked) this.#ask(one);
    await checkRecognition(runner, this.#findings);
    checkExternal(runner, this.#external, this.#findings);
  }

  /** `next`: what the new process has to do. */
  async #restart(next: "changes" | "restart"): Promise<void> {
    const runner = this.#runner;
    const own = runner.host.own();
    await runner.restart();
    const isKernel = this.#module.residence === "kernel";
    if (isKernel && !isEqual(own, runner.host.own()))
      this.#findings.add({
        kind: "cleanup",
        family: "IPv4",
        what: "close",
        expected: "everything stays in force",
        got: "something went",
      });
    if (!isKernel) {
      this.#active = undefined;
      // What was kept ended with the process.
      this.#kept.clear();
    }
    this.#book.review(runner.world, !isKernel);
    // A new process knows nothing of what was: only what is there now can tell it which flows are stale.
    await this.#syncWithFlows(
      { ...runner.world, objects: runner.world.objects.filter(({ kind }) => kind === "Node" || kind === "ServiceCIDR") },
      next,
    );
  }

  async #syncWithFlows(before: OracleWorld, what: "changes" | "restart" = "changes"): Promise<void> {
    const { host, world } = this.#runner;
    const flows = [...host.flows];
    await this.#syncAndLook(what === "restart" && this.#module.residence === "kernel" ? "restart" : "changes");
    this.#book.review(world);
    for (const found of wrongFlows(this.#runner, before, world, flows))
      this.#findings.add({ ...found, rules: this.#offended(found.rules ?? []) });
  }

  /** Sync, and look at packets whenever the tool has done something. */
  async #syncAndLook(what: "changes" | "restart"): Promise<void> {
    const runner = this.#runner;
    const { host, world: after } = runner;
    const before = this.#active;
    const underWay = before === undefined ? undefined : new UnderWay(host, { before, after, packets: this.#watched }, this.#random);
    runner.onToolCall = underWay === undefined ? undefined : (): void => underWay.look();
    await syncAndNote(runner, this.#findings, what);
    runner.onToolCall = undefined;
    this.#active = after;
    for (const found of underWay?.found() ?? []) this.#findings.add({ ...found, rules: this.#offended(found.rules) });
  }

  /** Rule R-56: of a backend that can't forget flows nobody asks it. */
  #isAskedAbout(fate: "forget" | "keep"): boolean {
    return fate === "keep" || this.#runner.abilities.capabilities.forgetsFlows === true;
  }

  #offended(rules: readonly string[]): readonly string[] {
    return offendedIn(this.#scenario.rules, rules, this.#runner.abilities);
  }

  #checkKeptFlow(name: string, is: "remembered" | "forgotten"): void {
    for (const { family, protocol } of this.#parts) {
      const kept = protocol === "UDP" ? this.#kept.get(keptKey(name, family, protocol)) : undefined;
      // Rule R-56: what the host itself sends passes by a backend that doesn't get at it, and leaves nothing.
      if (kept?.packet.link === "" && this.#runner.abilities.capabilities.hostOrigin !== true) continue;
      if (kept === undefined || !this.#isAskedAbout(is === "forgotten" ? "forget" : "keep")) continue;
      const got = this.#runner.host.flows.some((flow) => isFlowOf(flow, kept)) ? "remembered" : "forgotten";
      if (got === is) continue;
      this.#findings.add({
        kind: "flow",
        family,
        protocol,
        what: `the kept flow ${name}`,
        expected: is,
        got,
        rules: this.#offended(offendedByFlow(is === "forgotten" ? "forget" : "keep")),
        details: [`answered by ${kept.endpoint ?? "nobody"}`],
      });
    }
  }

  /** Make the packets of probes, in all families and protocols. */
  #packets(probes: readonly Probe[]): readonly Asked[] {
    const asked: Asked[] = [];
    for (const probe of probes)
      for (const { family, protocol } of this.#parts) {
        const what = `${probeText(probe)} ${family} ${protocol}`;
        try {
          asked.push({ probe, what, packet: packetOf(probe, family, protocol, this.#runner.services, this.#ownBit) });
        } catch (error) {
          this.#findings.threw(`probe ${what}`, family, error);
        }
      }
    return asked;
  }

  #ask({ probe, what, packet }: Asked): void {
    if (this.#findings.isFull) return;
    const rules = this.#rules;
    const { family, protocol } = packet;
    this.#cells.probe(rules, family, protocol);
    const { host, world } = this.#runner;
    const verdict = verdictOf(world, packet);
    const remembered = this.#book.find(world, packet, host.world.clock.nowMs());
    const like = probe.like === undefined ? undefined : this.#kept.get(keptKey(probe.like.kept, family, protocol));
    const question = {
      packet,
      verdict,
      remembered,
      sees: isReference(this.#runner.abilities) ? probe.sees : undefined,
      likeEndpoint: like?.endpoint,
      goes: probe.like?.goes,
      isEven: probe.isEven,
      isFixed: isFixed(world, packet),
    };
    for (const complaint of judgePacket(host, question, this.#random))
      this.#findings.add({ ...complaint, family, protocol, what, rules: this.#offended(complaint.rules) });
    if (probe.keep !== undefined) this.#keep(probe.keep, packet, world);
  }

  #keep(name: string, packet: Packet, world: OracleWorld): void {
    const { host } = this.#runner;
    const { endpoint } = host.connect(packet, this.#random);
    this.#kept.set(keptKey(name, packet.family, packet.protocol), { packet, endpoint });
    if (endpoint !== undefined) this.#book.connected(world, packet, endpoint, host.world.clock.nowMs());
  }
}

/** Of every probe one packet in each family, and the next protocol with the next probe: many are followed many times. */
function oneByFamily(asked: readonly Asked[]): readonly WatchedPacket[] {
  const probes = [...Map.groupBy(asked, ({ probe }) => probe).values()];
  return probes.flatMap((ofProbe, index) =>
    [...Map.groupBy(ofProbe, ({ packet }) => packet.family).values()].flatMap((ofFamily) => {
      const at = index % ofFamily.length;
      return ofFamily.slice(at, at + 1);
    }),
  );
}

function keptKey(name: string, family: IPFamily, protocol: Protocol): string {
  return `${name} ${family} ${protocol}`;
}

function isFlowOf(flow: Flow, { packet, endpoint }: Kept): boolean {
  const isSame = flow.source === packet.source && flow.destination === packet.destination && flow.port === packet.port;
  return isSame && flow.family === packet.family && (endpoint === undefined || flow.endpoint === endpoint);
}
