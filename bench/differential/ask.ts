import { setTimeout as sleep } from "node:timers/promises";
import { placeNameOf, STAGE_NODE } from "@turnout/conformance";
import { FAMILIES } from "@turnout/core";
import type { Attempt, Cluster } from "@turnout/lab";
import type { Answers, FlowFates } from "./permitted.ts";
import { nodeAddresses } from "./questions.ts";
import type { HealthQuestion, Question } from "./questions.ts";

/** How patiently something is asked. */
export interface Patience {
  /** So many that one of several endpoints is missed with a chance of e to the minus this. */
  readonly certainty: number;
  /** Until silence counts as an answer. */
  readonly timeoutMs: number;
}

/** Source ports below those that the kernel gives out by itself, so that no flow of before is met again. */
const PORTS = { first: 13_000, last: 29_999 } as const;
/** Connections of one client under way at a time. */
const AT_ONCE = 64;
/** Kept flows are asked so often. */
const EVERY_MS = 200;

/** Connections of a client that is remembered. */
const AFFINE_TRIES = 3;

/** What the asker has to know of questions. */
export interface HowToAsk {
  readonly oneByOne: ReadonlySet<Question>;
  readonly expected: (question: Question) => number;
}

/** Asks in one cluster. */
export class Asker {
  /** Connections so far. */
  connections = 0;
  readonly #cluster: Cluster;
  #port: number = PORTS.first;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /**
   * Ask each question several times; `expected`: how many answers there may be. Those in `oneByOne` leave something behind (session affinity): each
   * waits for the one before.
   */
  async ask(questions: readonly Question[], { certainty, timeoutMs }: Patience, how: HowToAsk): Promise<ReadonlyMap<Question, Answers>> {
    const { oneByOne, expected } = how;
    const answers = new Map(questions.map((question) => [question, new Set<string>()]));
    const once = async (question: Question): Promise<void> => {
      answers.get(question)?.add(await this.#attempt(question, timeoutMs));
    };
    const apart = questions.filter((question) => !oneByOne.has(question));
    const attempts = apart.flatMap((question) => Array.from({ length: triesFor(expected(question), certainty) }, () => question));
    await Promise.all([...Map.groupBy(attempts, ({ from }) => from).values()].map((some) => inTurns(some, once, AT_ONCE)));
    const affine = questions.filter((question) => oneByOne.has(question));
    await Promise.all(
      [...Map.groupBy(affine, ({ from }) => from).values()].map((some) =>
        inTurns(
          some.flatMap((question) => Array.from({ length: AFFINE_TRIES }, () => question)),
          once,
          1,
        ),
      ),
    );
    this.connections += attempts.length + AFFINE_TRIES * affine.length;
    return new Map([...answers].map(([question, seen]) => [question, [...seen].toSorted()]));
  }

  async #attempt({ from, address, port, protocol }: Question, timeoutMs: number): Promise<string> {
    const fromPort = protocol === "UDP" ? { fromPort: this.#nextPort() } : {};
    return answerText(
      from,
      await this.#cluster
        .place(from)
        .agent()
        .attempt({ address, port, transport: protocol, timeoutMs, ...fromPort }),
    );
  }

  #nextPort(): number {
    this.#port = this.#port === PORTS.last ? PORTS.first : this.#port + 1;
    return this.#port;
  }

  /** Open some flows for each question and keep them; those that get no answer are left out. */
  async open(questions: readonly Question[], each: number): Promise<KeptFlows> {
    const kept = await Promise.all(questions.flatMap((question) => Array.from({ length: each }, () => this.#open(question))));
    return new KeptFlows(kept.flat());
  }

  async #open(question: Question): Promise<readonly Kept[]> {
    const { address, port, protocol, from } = question;
    const agent = this.#cluster.place(from).agent();
    const fromPort = protocol === "UDP" ? { fromPort: this.#nextPort() } : {};
    try {
      const handle = await agent.hold({ address, port, transport: protocol, everyMs: EVERY_MS, timeoutMs: 1_000, ...fromPort });
      const { server } = await agent.holdStatus(handle);
      return [{ question, server, agent, handle }];
    } catch {
      return [];
    }
  }

  /** Ask a health check node port from outside: status, endpoints and the header that load balancers read. */
  async health({ address, port }: HealthQuestion): Promise<string> {
    const client = this.#cluster.clients[0];
    if (client === undefined) throw new Error("the stage has no client outside");
    const { outcome, status, headers, body } = await client.agent().get({ address, port, path: "/", timeoutMs: 1_000 });
    if (outcome !== "ok") return outcome === "timeout" ? "dropped" : outcome;
    return `${status} ${headers["x-load-balancing-endpoint-weight"] ?? "-"} ${JSON.stringify(JSON.parse(body))}`;
  }
}

interface Kept {
  readonly question: Question;
  /** Who answered first. */
  readonly server: string;
  readonly agent: ReturnType<ReturnType<Cluster["place"]>["agent"]>;
  readonly handle: number;
}

/** Flows that are kept while the world changes. */
export class KeptFlows {
  readonly #flows: readonly Kept[];

  constructor(flows: readonly Kept[]) {
    this.#flows = flows;
  }

  /** Say for each question and first server what became of the flows. */
  async fates(): Promise<ReadonlyMap<Question, ReadonlyMap<string, FlowFates>>> {
    const before = await this.#statuses();
    await sleep(3 * EVERY_MS + 50);
    const after = await this.#statuses();
    const fates = new Map<Question, Map<string, FlowFates>>();
    for (const [index, { question, server }] of this.#flows.entries()) {
      const [then, now] = [before[index], after[index]];
      if (then === undefined || now === undefined) continue;
      const isKept = now.state === "open" && now.answers > then.answers && now.server === server;
      const fate = isKept ? "kept" : "forgotten";
      const known = fates.get(question) ?? new Map<string, FlowFates>();
      known.set(server, [...new Set([...(known.get(server) ?? []), fate] as const)].toSorted());
      fates.set(question, known);
    }
    return fates;
  }

  async release(): Promise<void> {
    await Promise.all(this.#flows.map(({ agent, handle }) => agent.release(handle)));
  }

  #statuses() {
    return Promise.all(this.#flows.map(({ agent, handle }) => agent.holdStatus(handle)));
  }
}

/** The node asks its own addresses with these themselves: they are all the node's. */
function answerText(from: string, { outcome, server = "", client = "" }: Attempt): string {
  if (outcome !== "ok") return outcome === "timeout" ? "dropped" : outcome;
  const saw = placeNameOf(client);
  const isOwn = from === STAGE_NODE && FAMILIES.some((family) => nodeAddresses(family).includes(saw));
  return `${server} saw ${isOwn ? STAGE_NODE : saw}`;
}

/** So many connections see all of some equally likely endpoints, but for a chance of e to the minus `certainty`; a refusal is believed at the second. */
function triesFor(endpoints: number, certainty: number): number {
  return endpoints < 2 ? 2 : Math.ceil((Math.log(endpoints) + certainty) / -Math.log(1 - 1 / endpoints));
}

/** Do the same with each of a list, so many at a time. */
async function inTurns<T>(list: readonly T[], act: (one: T) => Promise<void>, atOnce: number): Promise<void> {
  const rest = [...list].toReversed();
  const worker = async (): Promise<void> => {
    for (let one = rest.pop(); one !== undefined; one = rest.pop()) await act(one);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
