import { hostPort } from "@turnout/core";
import type { Packet, Verdict } from "../oracle/packet.ts";
import type { FakeHost, Trace } from "../runner/fake-host.ts";
import type { Remembered } from "./affinity-book.ts";
import { offendedBy, type Missed } from "./offended.ts";
import { SERVER_PORT, STAGE_NODE } from "../runner/stage.ts";
import { formatWords, parseWords, seenAt, serverName } from "../runner/words.ts";
import type { Seen, SeenGroup } from "../runner/words.ts";

/** Draws that are always made where a server is chosen. */
const DRAWS_MIN = 24;
/** Draws after which a server that never answered counts as never chosen: of nine, one is missed once in 10^19 runs. */
const DRAWS_MAX = 400;
/** A refusal is no matter of chance. */
const PLAIN_DRAWS = 3;
/** Draws for each endpoint where shares are looked at. */
const EVEN_DRAWS = 400;
/** How far off the even share an endpoint may be. Of nine even ones, one is farther off by chance once in 10^8 runs, of three once in 10^12. */
const UNEVEN_SHARE = 0.3;

/** What is wrong with one packet. */
export interface Complaint {
  readonly kind: "verdict" | "affinity" | "contract";
  readonly expected: string;
  readonly got: string;
  readonly details: readonly string[];
  /** Rules it offends against; empty where the kit is wrong. */
  readonly rules: readonly string[];
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
  /** Whether the client's address alone decides: it must always get the same one of those that it may get. */
  readonly isFixed?: boolean;
  /** Whether each server must get the same share. */
  readonly isEven?: boolean | undefined;
}

/** Follow a packet often enough to see all that may become of it, and say what should not have. */
export function judgePacket(host: Pick<FakeHost, "trace">, question: Question, random: () => number): readonly Complaint[] {
  const { packet, verdict, remembered } = question;
  const complaints: Complaint[] = complaintsAboutKit(question);
  const due = wordsOfVerdict(verdict, packet);
  const kept = remembered?.is === "kept" ? wordsOf(seenOf(verdict, packet, remembered.endpoint)) : undefined;
  const expected = kept ?? due;
  const seen = draw(host, packet, remembered?.is === "doubtful" || question.isFixed === true ? [] : expected, random);
  const because = verdict.because.length === 0 ? [] : [`by ${verdict.because.join(", ")}`];
  for (const [words, { path }] of seen) {
    if (expected.includes(words)) continue;
    const isElsewhere = kept !== undefined && due.includes(words);
    complaints.push({
      kind: isElsewhere ? "affinity" : "verdict",
      expected: together(expected),
      got: words,
      details: [...because, ...path],
      rules: isElsewhere ? AFFINITY_RULES : offendedBy(verdict.because, missedBy(expected, words, packet)),
    });
  }
  if (question.isFixed === true) return complaints.length > 0 || seen.size <= 1 ? complaints : [unsteady([...seen.keys()], because)];
  const missed = expected.filter((words) => !seen.has(words));
  if (complaints.length > 0 || remembered?.is === "doubtful") return complaints;
  if (missed.length > 0) {
    const isHeld = remembered === undefined && question.goes === "free";
    return [
      {
        kind: isHeld ? "affinity" : "verdict",
        expected: together(expected),
        got: `never ${together(missed)}`,
        details: [...because, ...([...seen.values()][0]?.path ?? [])],
        rules: isHeld ? AFFINITY_RULES : offendedBy(verdict.because, "fate"),
      },
    ];
  }
  return question.isEven === true && remembered === undefined ? unevenShares(host, packet, expected, random) : [];
}

const AFFINITY_RULES: readonly string[] = ["R-46", "R-08"];

function unsteady(seen: readonly string[], because: readonly string[]): Complaint {
  return { kind: "affinity", expected: "always the same one", got: together(seen), details: because, rules: AFFINITY_RULES };
}

/** What a packet met instead of what it should have. */
export function missedBy(expected: readonly string[], got: string, packet: Packet): Missed {
  const serverOf = (words: string): string | undefined => words.split(" saw ").slice(0, -1)[0];
  const server = serverOf(got);
  if (server === undefined || !expected.some((words) => serverOf(words) === server)) return "fate";
  return server === serverName(hostPort(packet.source, SERVER_PORT)) ? "hairpin" : "source";
}

/** Draw often enough for chance to play no part, and complain of the server that is farthest off its share, if one is too far off. */
function unevenShares(
  host: Pick<FakeHost, "trace">,
  packet: Packet,
  expected: readonly string[],
  random: () => number,
): readonly Complaint[] {
  const counts = new Map(expected.map((words) => [words, 0]));
  for (let draws = 0; draws < EVEN_DRAWS * expected.length; draws++) {
    const words = wordsOfTrace(host.trace(packet, random), packet);
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  const shares = [...counts].map(([words, count]) => ({ words, share: count / EVEN_DRAWS, off: Math.abs(count / EVEN_DRAWS - 1) }));
  const [worst] = shares.toSorted((a, b) => b.off - a.off);
  if (worst === undefined || worst.off <= UNEVEN_SHARE) return [];
  return [
    {
      kind: "verdict",
      expected: `an even share for each of ${together(expected)}`,
      got: `${worst.share.toFixed(2)} times as much for ${worst.words}`,
      details: shares.map(({ words, share }) => `${share.toFixed(2)} of an even share: ${words}`),
      rules: ["R-68"],
    },
  ];
}

/** Where the words and the oracle say two things, one of them is wrong: the kit, whatever the backend does. */
function complaintsAboutKit({ packet, verdict, remembered, sees, likeEndpoint, goes }: Question): Complaint[] {
  const oracle = formatWords(seenOf(verdict, packet));
  const complaint = (expected: string, got: string): Complaint => ({
    kind: "contract",
    expected: `words of the scenario: ${expected}`,
    got: `the oracle: ${got}`,
    details: [`by ${verdict.because.join(", ")}`],
    rules: [],
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
  const ways = new Set<string>();
  for (let draws = 0; draws < DRAWS_MAX; draws++) {
    const trace = host.trace(packet, random);
    const way = `${trace.is} ${trace.endpoint} ${trace.masquerade}`;
    if (!ways.has(way)) seen.set(wordsOfTrace(trace, packet), trace);
    ways.add(way);
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
