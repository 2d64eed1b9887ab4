import { setTimeout as sleep } from "node:timers/promises";
import type { FlowExpectation, Packet, Probe, Scenario, Step } from "@turnout/conformance";
import type { BackendModule, IPFamily, Protocol } from "@turnout/core";
import { formatWords, parseWords, probeText, STAGE_NODE, StageObjects } from "@turnout/conformance";
import type { Agent } from "@turnout/lab";
import { lookAtFlows } from "./conformance-flows.ts";
import type { FlowInQuestion } from "./conformance-flows.ts";
import { ask, askOnce, wordsOfOne } from "./conformance-probe.ts";
import type { Question } from "./conformance-probe.ts";
import type { RealStage } from "./conformance-stage.ts";
import { attemptWithWitness, PATIENCE_MS } from "./witness.ts";

/** One family and protocol a scenario is played in. */
export interface Cast {
  readonly family: IPFamily;
  readonly protocol: Protocol;
}

/** How long what no barrier covers (Node objects, addresses of the host) may take to be in force. */
const UNCOVERED_MS = 30_000;

/** How often something is sent over a socket that is kept. */
const ASK_EVERY_MS = 100;

/** A connection that was kept. */
interface Kept {
  readonly packet: Packet;
  readonly fromPort: number;
  /** Who answered; "" when nobody did. */
  readonly server: string;
  /** Its socket, where the socket is all that remembers it. */
  readonly socket?: HeldSocket;
}

/** A socket that an agent keeps. */
interface HeldSocket {
  readonly agent: Agent;
  readonly handle: number;
}

/** What is known while a scenario is played. */
interface Running {
  readonly stage: RealStage;
  readonly casts: readonly Cast[];
  readonly objects: StageObjects;
  readonly kept: Map<string, Kept>;
}

/**
 * Play a scenario with real packets, in some families and protocols at once, and say what was otherwise than its words: a line each.
 *
 * Edges: whatever happens, its objects are removed and the stage is as before.
 */
export async function execute(
  scenario: Scenario,
  { stage, module, casts }: { readonly stage: RealStage; readonly module: BackendModule; readonly casts: readonly Cast[] },
): Promise<readonly string[]> {
  const running: Running = { stage, casts, objects: new StageObjects(scenario, module), kept: new Map() };
  const findings: string[] = [];
  try {
    await stage.prepare(scenario);
    for (const step of scenario.steps) {
      const isCovered = scenario.hostAddresses === undefined;
      findings.push(...(await runStep(step, running, isCovered)).map((finding) => `${step.say}: ${finding}`));
    }
  } finally {
    for (const ref of running.objects.refs) await stage.site.api.delete(ref);
    for (const { socket } of running.kept.values()) await socket?.agent.release(socket.handle);
    await stage.restore(running.objects.wasAffine);
  }
  return findings;
}

async function runStep(step: Step, running: Running, isHostCovered: boolean): Promise<readonly string[]> {
  const { stage, objects } = running;
  const startMs = performance.now();
  if (step.restart === true) await stage.restartProxy();
  for (const object of step.put ?? []) objects.put(object);
  await stage.servers.listen(objects.listeners().filter(({ protocol }) => running.casts.some((cast) => cast.protocol === protocol)));
  for (const ref of step.remove ?? []) objects.remove(ref);
  // With what is removed gone: where the oracle says what is expected, it is asked about the end of the step.
  await setScene(step.probes ?? [], running);
  await stage.site.api.apply(step.put ?? []);
  for (const ref of step.remove ?? []) await stage.site.api.delete(ref);
  await stage.site.waitForSync();
  // What the step itself took is part of the time that it lets pass: on a busy machine a client's affinity would end meanwhile.
  await sleep(Math.max(0, startMs + (step.waitSeconds ?? 0) * 1_000 - performance.now()));
  const isCovered =
    isHostCovered &&
    ![...(step.put ?? []).map((object) => object["kind"]), ...(step.remove ?? []).map(({ kind }) => kind)].some(
      (kind) => kind === "Node" || kind === "ServiceCIDR",
    );
  const flows = await lookAtFlows(stage.site.cluster, flowsInQuestion(step.flows ?? [], running));
  const untilMs = performance.now() + UNCOVERED_MS;
  for (;;) {
    const findings = await sendProbes(step.probes ?? [], running);
    if (findings.length === 0 || isCovered || performance.now() > untilMs) return [...flows, ...findings];
  }
}

/**
 * Give node1 the addresses it sends from, and have whoever is asked for what the proxy should leave alone answer himself, so that a refusal of
 * the proxy's shows.
 */
async function setScene(probes: readonly Probe[], { stage, casts, objects }: Running): Promise<void> {
  for (const probe of probes)
    for (const { family, protocol } of casts) {
      const packet = objects.packet(probe, family, protocol);
      const { destination: address, port, source } = packet;
      if (probe.as !== undefined && probe.from === STAGE_NODE) await stage.bind(source);
      if (objects.words(probe, packet) === "untouched") await stage.answer(probe.from, { address, port, protocol });
    }
}

/**
 * What leaves something behind that others meet (connections that are kept, all of affine clients) one after another, in the order of the
 * list; then all others at once.
 */
async function sendProbes(probes: readonly Probe[], running: Running): Promise<readonly string[]> {
  const byCast = await Promise.all(
    running.casts.map(async (cast) => {
      const findings: (string | undefined)[] = [];
      const leavesTraces = (probe: Probe): boolean =>
        probe.keep !== undefined || running.objects.isAffine(running.objects.packet(probe, cast.family, cast.protocol));
      for (const probe of probes.filter(leavesTraces)) findings.push(await send(probe, cast, running));
      const others = probes.filter((probe) => !leavesTraces(probe));
      findings.push(...(await Promise.all(others.map((probe) => send(probe, cast, running)))));
      return findings.filter((finding) => finding !== undefined);
    }),
  );
  return byCast.flat();
}

async function send(probe: Probe, cast: Cast, running: Running): Promise<string | undefined> {
  const packet = running.objects.packet(probe, cast.family, cast.protocol);
  const question = questionFor(probe, packet, cast, running);
  const got = probe.keep === undefined ? await ask(question) : await keep(question, packet, keyOf(probe.keep, cast), running);
  const expected = formatWords(parseWords(question.expected));
  if (got === expected || got === question.expected) return undefined;
  return `${cast.family} ${cast.protocol} ${probeText(probe)}: expected "${expected}", got "${got}"`;
}

/** Connect once, and remember how and where to. */
async function keep(question: Question, packet: Packet, key: string, { kept, stage }: Running): Promise<string> {
  const fromPort = question.nextPort();
  const { agent, request, expected } = question;
  if (request.transport === "UDP" && parseWords(expected).is === "forward" && stage.servesSocketOf(question.from)) {
    const handle = await agent.hold({ ...request, fromPort, everyMs: ASK_EVERY_MS, timeoutMs: PATIENCE_MS });
    const { server, client } = await agent.holdStatus(handle);
    kept.set(key, { packet, fromPort, server, socket: { agent, handle } });
    return wordsOfOne(question, { outcome: "ok", latencyMs: 0, server, client });
  }
  const one = await askOnce(question, fromPort);
  kept.set(key, { packet, fromPort, server: one.outcome === "ok" ? (one.server ?? "") : "" });
  return wordsOfOne(question, one);
}

function questionFor(probe: Probe, packet: Packet, cast: Cast, { stage, objects, kept }: Running): Question {
  const { site } = stage;
  const like = probe.like?.goes === "same" ? kept.get(keyOf(probe.like.kept, cast)) : undefined;
  const goesWith = like === undefined || objects.areRememberedApart(packet, like.packet) ? undefined : like;
  return {
    agent: site.place(probe.from).agent(),
    attemptWithWitness: (request) => attemptWithWitness(site, probe.from, request),
    request: {
      address: packet.destination,
      port: packet.port,
      transport: cast.protocol,
      ...(probe.as === undefined ? {} : { fromAddress: packet.source }),
    },
    expected: objects.words(probe, packet),
    owner: stage.ownerName(packet.destination, packet.port),
    from: probe.from,
    ...(goesWith !== undefined ? { affinity: { to: goesWith.server } } : objects.isAffine(packet) ? { affinity: {} } : {}),
    nameOf: site.nameOf,
    nextPort: () => stage.nextPort(probe.from),
  };
}

function flowsInQuestion(expectations: readonly FlowExpectation[], { casts, kept }: Running): readonly FlowInQuestion[] {
  return expectations.flatMap(({ kept: key, is }) =>
    casts
      .filter(({ protocol }) => protocol === "UDP")
      .map((cast): FlowInQuestion => {
        const name = `${cast.family} UDP flow ${key}`;
        const flow = kept.get(keyOf(key, cast));
        if (flow === undefined) throw new Error(`${name}: nothing was kept under that name`);
        const { packet, fromPort, socket } = flow;
        const isOpen = async ({ agent, handle }: HeldSocket): Promise<boolean> => (await agent.holdStatus(handle)).state === "open";
        return { name, is, packet, fromPort, ...(socket === undefined ? {} : { isOpen: () => isOpen(socket) }) };
      }),
  );
}

function keyOf(name: string, { family, protocol }: Cast): string {
  return `${family} ${protocol} ${name}`;
}
