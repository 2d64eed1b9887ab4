import type { Protocol } from "@turnout/core";
import { formatWords, parseWords } from "@turnout/conformance";
import type { Seen } from "@turnout/conformance";
import type { Agent, Attempt, Outcome, TargetRequest } from "@turnout/lab";
import { PATIENCE_MS } from "./witness.ts";

/** How long silence must last to be told from a refusal: a refused SYN may have to be sent again first, after 1 s (see the lab's README). */
const SILENCE_MS: Readonly<Record<Protocol, number>> = { TCP: 1_250, UDP: 300, SCTP: 300 };
const AT_ONCE = 4;
/** e^-30 is the chance that a burst misses a server that answers its share: below 10^-9 for all bursts of a run together. */
const NATS_OF_CERTAINTY = 30;

/** A probe, ready to be sent. */
export interface Question {
  readonly agent: Agent;
  readonly request: TargetRequest & { readonly transport: Protocol };
  /** The words it should end in. */
  readonly expected: string;
  /** Under what name whoever has the address asked answers himself; "" when nobody has it. */
  readonly owner: string;
  /** The name of the place that asks. */
  readonly from: string;
  /** Ask once for so long, and believe silence only beside a witness that answers. */
  attemptWithWitness(request: TargetRequest & { readonly timeoutMs: number }): Promise<Attempt>;
  /** All connections must go to one server: any that is expected, or this one. */
  readonly affinity?: { readonly to?: string };
  nameOf(address: string): string;
  /** A source port nobody has used lately, so that no remembered flow is met by chance. */
  nextPort(): number;
}

/**
 * Ask as often as it takes and say what became of it, in the words of {@link Question.expected} when all is well.
 *
 * Edges: an unexpected server is looked for in at least twelve connections, four for each that is expected; an expected one is waited for
 * until chance is no excuse. An affine client is allowed any one of the servers expected.
 */
export async function ask(question: Question): Promise<string> {
  const expected = parseWords(question.expected);
  const first = await askOnce(question, question.nextPort());
  if (first.outcome !== "ok") return plainWords(question, expected, first.outcome);
  if (expected.is === "pass" && isDirect(question, first)) return question.expected;
  const sighted = new Sightings(question);
  sighted.add(first);
  const wanted = pairsOf(expected);
  const least = Math.max(12, wanted.size * 4);
  const most = question.affinity === undefined ? connectionsFor(wanted.size) : least;
  const goesOn = (count: number): boolean => !sighted.hasFailed && (count < least || (count < most && !sighted.has(wanted)));
  for (let count = 1; goesOn(count); count += AT_ONCE)
    for (const one of await Promise.all(Array.from({ length: AT_ONCE }, () => attempt(question, question.nextPort())))) sighted.add(one);
  return judged(question, sighted, wanted);
}

/** Ask once, from a given port; the attempt itself, for connections that are kept. */
export async function askOnce(question: Question, fromPort: number): Promise<Attempt> {
  const { is } = parseWords(question.expected);
  if (is !== "drop" && is !== "pass") return await attempt(question, fromPort);
  return await question.attemptWithWitness({ ...question.request, fromPort, timeoutMs: SILENCE_MS[question.request.transport] });
}

/** Say what one attempt came to, in the words expected when it is among what is expected. */
export function wordsOfOne(question: Question, one: Attempt): string {
  const expected = parseWords(question.expected);
  if (one.outcome !== "ok") return plainWords(question, expected, one.outcome);
  if (expected.is === "pass" && isDirect(question, one)) return question.expected;
  const sighted = new Sightings(question);
  sighted.add(one);
  return judged({ ...question, affinity: question.affinity ?? {} }, sighted, pairsOf(expected));
}

/**
 * Wait for an answer or a refusal that should come. Silence is broken once more, in the same flow, before it counts; a TCP connection has
 * sent its SYN again by itself.
 */
async function attempt({ agent, request }: Question, fromPort: number): Promise<Attempt> {
  const asked = { ...request, fromPort, timeoutMs: PATIENCE_MS };
  const first = await agent.attempt(asked);
  return first.outcome === "timeout" && request.transport !== "TCP" ? await agent.attempt(asked) : first;
}

/** Silence, and what routers say of an address that nobody has, are what is left of a packet that nobody translated. */
function plainWords(question: Question, expected: Seen, outcome: Outcome): string {
  if (outcome === "refused") return "refused";
  if (expected.is === "pass" && question.owner === "") return question.expected;
  return outcome === "timeout" ? "dropped" : outcome;
}

/** Whoever has the address answered himself, and saw who asked. */
function isDirect({ owner, from, nameOf, request }: Question, { server = "", client = "" }: Attempt): boolean {
  return owner !== "" && server === owner && (nameOf(client) === from || client === request.address);
}

function judged(question: Question, sighted: Sightings, wanted: ReadonlySet<string>): string {
  const { affinity, expected } = question;
  const said = sighted.words();
  if (affinity === undefined || sighted.hasFailed || sighted.servers.size !== 1) return said;
  const isAllowed = sighted.isWithin(wanted) && (affinity.to === undefined || sighted.servers.has(affinity.to));
  return isAllowed ? formatWords(parseWords(expected)) : `${said}${affinity.to === undefined ? "" : ` (kept with ${affinity.to})`}`;
}

/** Who was seen, and whom they saw. */
class Sightings {
  readonly #question: Question;
  readonly #pairs = new Map<string, { readonly server: string; readonly saw: string }>();
  readonly #failed = new Map<Outcome, number>();

  constructor(question: Question) {
    this.#question = question;
  }

  get servers(): ReadonlySet<string> {
    return new Set([...this.#pairs.values()].map(({ server }) => server));
  }

  get hasFailed(): boolean {
    return this.#failed.size > 0;
  }

  get failed(): string {
    return [...this.#failed].map(([outcome, count]) => `, ${outcome} ${count} times`).join("");
  }

  add({ outcome, server = "", client = "" }: Attempt): void {
    if (outcome !== "ok") {
      this.#failed.set(outcome, (this.#failed.get(outcome) ?? 0) + 1);
      return;
    }
    const saw = this.#question.nameOf(client);
    this.#pairs.set(`${server} saw ${saw}`, { server, saw });
  }

  has(wanted: ReadonlySet<string>): boolean {
    return [...wanted].every((pair) => this.#pairs.has(pair));
  }

  isWithin(wanted: ReadonlySet<string>): boolean {
    return [...this.#pairs.keys()].every((pair) => wanted.has(pair));
  }

  words(): string {
    const groups = [...this.#pairs.values()].map(({ server, saw }) => ({ servers: [server], saw }));
    return formatWords({ is: "forward", groups }) + this.failed;
  }
}

function pairsOf({ groups }: Seen): ReadonlySet<string> {
  return new Set(groups.flatMap(({ servers, saw }) => servers.map((server) => `${server} saw ${saw}`)));
}

/** So many connections see all of `servers`, equally likely, but for a chance of e^-{@link NATS_OF_CERTAINTY}. */
function connectionsFor(servers: number): number {
  return servers < 2 ? 1 : Math.ceil((Math.log(servers) + NATS_OF_CERTAINTY) / -Math.log(1 - 1 / servers));
}
