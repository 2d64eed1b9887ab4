import type { Packet, Verdict } from "../oracle/packet.ts";
import type { FakeHost, Trace } from "../play/fake-host.ts";
import type { Remembered } from "./affinity-book.ts";
import { STAGE_NODE } from "../play/stage.ts";
import { formatWords, parseWords, seenAt, serverName } from "../play/words.ts";
import type { Seen, SeenGroup } from "../play/words.ts";

/** Draws that are always made where a server is chosen. */
const DRAWS_MIN = 24;
/** Draws after which a server that never answered counts as never chosen: of nine, one is missed once in 10^19 runs. */
const DRAWS_MAX = 400;
/** A refusal is no matter of chance. */
const PLAIN_DRAWS = 3;

/** What is wrong with one packet. */
export interface Complaint {
  readonly kind: "verdict" | "affinity" | "contract";
  readonly expected: string;
  readonly got: string;
  readonly details: readonly string[];
}

/** What a packet is judged by. */
export interface Question {
  readonly packet: Packet;
  readonly verdict: Verdict;
  /** What the client's affinity says. */
  readonly remembered: Remembered | undefined;
  /** The scenario's words; undefined where they don't count. */
  readonly sees?: string | undefined;
  /** Where the kept connection went that this one must be like. */
  readonly likeEndpoint?: string | undefined;
  /** What the scenario says of that. */
  readonly goes?: "same" | "free" | undefined;
}

/** Follow a packet often enough to see all that may become of it, and say what should not have. */
export function judgePacket(host: Pick<FakeHost, "trace">, question: Question, random: () => number): readonly Complaint[] {
  const { packet, verdict, remembered } = question;
  const complaints: Complaint[] = complaintsAboutKit(question);
  const due = wordsOfVerdict(verdict, packet);
  const kept = remembered?.is === "kept" ? wordsOf(seenOf(verdict, packet, remembered.endpoint)) : undefined;
  const expected = kept ?? due;
  const seen = draw(host, packet, remembered?.is === "doubtful" ? [] : expected, random);
  const because = verdict.because.length === 0 ? [] : [`by ${verdict.because.join(", ")}`];
  for (const [words, { path }] of seen) {
    if (expected.includes(words)) continue;
    const isElsewhere = kept !== undefined && due.includes(words);
    complaints.push({
      kind: isElsewhere ? "affinity" : "verdict",
      expected: together(expected),
      got: words,
      details: [...because, ...path],
    });
  }
  const missed = expected.filter((words) => !seen.has(words));
  if (missed.length > 0 && remembered?.is !== "doubtful" && complaints.length === 0)
    complaints.push({
      kind: remembered === undefined && question.goes === "free" ? "affinity" : "verdict",
      expected: together(expected),
      got: `never ${together(missed)}`,
      details: [...because, ...([...seen.values()][0]?.path ?? [])],
    });
  return complaints;
}

/** Where the words and the oracle say two things, one of them is wrong: the kit, whatever the backend does. */
function complaintsAboutKit({ packet, verdict, remembered, sees, likeEndpoint, goes }: Question): Complaint[] {
  const oracle = formatWords(seenOf(verdict, packet));
  const complaint = (expected: string, got: string): Complaint => ({
    kind: "contract",
    expected: `words of the scenario: ${expected}`,
    got: `the oracle: ${got}`,
    details: [`by ${verdict.because.join(", ")}`],
  });
  if (sees === undefined) return [];
  const words = formatWords(parseWords(sees));
  if (words !== oracle) return [complaint(words, oracle)];
  if (goes === "same" && (remembered?.is !== "kept" || remembered.endpoint !== likeEndpoint))
    return [
      complaint(
        `like the kept one, to ${likeEndpoint ?? "nowhere"}`,
        remembered === undefined ? "anywhere" : `${remembered.is} ${remembered.endpoint}`,
      ),
    ];
  if (goes === "free" && remembered?.is === "kept") return [complaint("anywhere", `kept ${remembered.endpoint}`)];
  return [];
}

function draw(
  host: Pick<FakeHost, "trace">,
  packet: Packet,
  expected: readonly string[],
  random: () => number,
): ReadonlyMap<string, Trace> {
  const seen = new Map<string, Trace>();
  for (let draws = 0; draws < DRAWS_MAX; draws++) {
    const trace = host.trace(packet, random);
    const words = wordsOfTrace(trace, packet);
    if (!seen.has(words)) seen.set(words, trace);
    const isPlain = seen.size === 1 && trace.is !== "forward";
    if (
      draws + 1 >= (isPlain ? PLAIN_DRAWS : DRAWS_MIN) &&
      (isPlain || expected.every((one) => seen.has(one)) || seen.size > expected.length)
    )
      break;
  }
  return seen;
}

/** Say one trace in words. */
export function wordsOfTrace({ is, endpoint, masquerade }: Trace, packet: Packet): string {
  if (is !== "forward") return formatWords({ is, groups: [] });
  return formatWords({ is, groups: [seenBy(endpoint ?? "nowhere:0", masquerade === true, packet)] });
}

/** Say all that may be seen by a verdict, one sentence for each. */
export function wordsOfVerdict(verdict: Verdict, packet: Packet): readonly string[] {
  return wordsOf(seenOf(verdict, packet));
}

/** What may be seen by a verdict, at any endpoint or at one. */
function seenOf(verdict: Verdict, packet: Packet, only?: string): Seen {
  if (verdict.is !== "forward") return { is: verdict.is, groups: [] };
  const answers = verdict.answers.filter(({ endpoint }) => only === undefined || endpoint === only);
  return { is: "forward", groups: answers.map(({ endpoint, masquerade }) => seenBy(endpoint, masquerade, packet)) };
}

/** What comes in and stays on the host never leaves it, which is where a source is rewritten: its own servers see the client. */
function seenBy(endpoint: string, masquerade: boolean, { source, link }: Packet): SeenGroup {
  const staysHere = link !== "" && serverName(endpoint).split(":")[0] === STAGE_NODE;
  return seenAt(endpoint, masquerade && !staysHere, source);
}

/** One sentence for each thing that may be seen. */
function wordsOf(seen: Seen): readonly string[] {
  if (seen.is !== "forward") return [formatWords(seen)];
  return seen.groups.flatMap(({ servers, saw }) =>
    servers.map((server) => formatWords({ is: "forward", groups: [{ servers: [server], saw }] })),
  );
}

/** Say in one sentence what several say. */
export function together(words: readonly string[]): string {
  if (words.length <= 1) return words[0] ?? "nothing";
  return formatWords({ is: "forward", groups: words.flatMap((one) => parseWords(one).groups) });
}
