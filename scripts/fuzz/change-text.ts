import { HOSTILE_WORDS } from "./hostile-values.ts";
import type { Random } from "./random.ts";

const REPEATS_MAX = 200;
const DEPTHS = [100, 1_000, 4_000] as const;
/** What opens a level of JSON, YAML or a list of rules, and what closes it. */
const LEVELS = [
  ["[", "]"],
  ['{"a":', "}"],
  ["{a: ", "}"],
  ["- ", ""],
  ["? ", ""],
  ["(", ")"],
] as const;

type Change = (parts: string[], others: readonly string[], random: Random) => void;

/** Changes of a text that is cut into parts: words, or lines. */
const CHANGES: readonly Change[] = [
  (parts, _, random) => void parts.splice(random.below(parts.length), 1, random.pick(HOSTILE_WORDS)),
  (parts, _, random) => void parts.splice(random.below(parts.length), 0, random.pick(HOSTILE_WORDS)),
  (parts, _, random) => void parts.splice(random.below(parts.length), 1 + random.below(3)),
  (parts, others, random) => void parts.splice(random.below(parts.length), random.below(2), random.pick(others)),
  (parts, others, random) => void parts.splice(random.below(parts.length), 0, ...slice(others, random)),
  (parts, _, random) => void parts.splice(random.below(parts.length), 0, ...slice(parts, random)),
  (parts, _, random) => void parts.splice(random.below(parts.length)),
  (parts, _, random) => {
    const at = random.below(parts.length);
    parts[at] = (parts[at] ?? "").repeat(1 + random.below(REPEATS_MAX));
  },
  (parts, _, random) => {
    const at = random.below(parts.length);
    const [open, close] = random.pick(LEVELS);
    const depth = random.pick(DEPTHS);
    parts[at] = open.repeat(depth) + (parts[at] ?? "") + close.repeat(depth);
  },
  (parts, _, random) => {
    const [a, b] = [random.below(parts.length), random.below(parts.length)];
    [parts[a], parts[b]] = [parts[b] ?? "", parts[a] ?? ""];
  },
  (parts, _, random) => {
    const at = random.below(parts.length);
    const text = parts[at] ?? "";
    const inside = random.below(text.length + 1);
    parts[at] = text.slice(0, inside) + random.pick(HOSTILE_WORDS) + text.slice(inside + random.below(2));
  },
];

/** Make another text of this one: words or lines go, come, move, or are hostile ones. */
export function changeText(input: Buffer, other: Buffer, random: Random): Buffer {
  // Both keep what is between the parts, so that joined they are the text.
  const cut = random.below(2) === 0 ? /(?<=\n)/ : /(?<=[\s{}[\],:"=/.])|(?=[\s{}[\],:"=/.])/;
  const parts = input.toString("utf8").split(cut);
  random.pick(CHANGES)(parts, other.toString("utf8").split(cut), random);
  return Buffer.from(parts.join(""));
}

function slice(parts: readonly string[], random: Random): readonly string[] {
  const at = random.below(parts.length);
  return parts.slice(at, at + 1 + random.below(12));
}
