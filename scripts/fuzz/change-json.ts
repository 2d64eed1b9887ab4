import { changeText } from "./change-text.ts";
import { HOSTILE_VALUES, HOSTILE_WORDS } from "./hostile-values.ts";
import type { Random } from "./random.ts";

/** A place in a JSON value: what holds it, and under which key or index. */
interface Place {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

/** Deeper than any stack has frames, and not so deep. */
const DEPTHS = [200, 2_000, 15_000] as const;
/** Stands in a text for what is nested; a value as deep as this is made as text alone. */
const NESTED = "nested here";
const COPIES_MAX = 50;

type Change = (place: Place, others: readonly Place[], random: Random) => void;

const CHANGES: readonly Change[] = [
  (place, _, random) => put(place, random.pick(HOSTILE_VALUES)),
  (place, _, random) => put(place, random.pick(HOSTILE_VALUES)),
  (place, others, random) => put(place, others.length === 0 ? null : get(random.pick(others))),
  ({ holder, key }) => {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  },
  ({ holder, key }, _, random) => {
    const value = get({ holder, key });
    if (Array.isArray(holder)) holder.push(...Array.from({ length: 1 + random.below(COPIES_MAX) }, () => structuredClone(value)));
    else put({ holder, key: random.pick(HOSTILE_WORDS) }, value);
  },
  (place, _, random) => {
    const value = get(place);
    if (typeof value === "string")
      put(place, changeText(Buffer.from(value), Buffer.from(random.pick(HOSTILE_WORDS)), random).toString("utf8"));
    else if (typeof value === "number") put(place, value + random.pick([-1, 1, 0.5, 65_536, 2 ** 32]));
    else if (typeof value === "boolean") put(place, !value);
  },
];

/** Make another JSON text of this one: values of other types and from other texts, fields that go or come. What isn't JSON is changed as text. */
export function changeJson(input: Buffer, other: Buffer, random: Random): Buffer {
  const root = parsed(input);
  if (root === undefined) return changeText(input, other, random);
  const wrapped = { root };
  const otherRoot = parsed(other);
  const others = otherRoot === undefined ? [] : placesOf({ root: otherRoot });
  const place = random.pick(placesOf(wrapped));
  try {
    if (random.below(CHANGES.length + 1) === 0) return nested(wrapped, place, random);
    random.pick(CHANGES)(place, others, random);
    return Buffer.from(JSON.stringify(wrapped.root) ?? "null");
  } catch (error) {
    // It is nested deeper than these functions can go.
    if (error instanceof RangeError) return changeText(input, other, random);
    throw error;
  }
}

function nested(wrapped: { readonly root: unknown }, place: Place, random: Random): Buffer {
  const inside = JSON.stringify(get(place)) ?? "null";
  put(place, NESTED);
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
  ] as const);
  const depth = random.pick(DEPTHS);
  const text = JSON.stringify(wrapped.root).replace(JSON.stringify(NESTED), () => open.repeat(depth) + inside + close.repeat(depth));
  return Buffer.from(text);
}

function parsed(input: Buffer): unknown {
  try {
    return JSON.parse(input.toString("utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Every place in a value, the value itself included. */
function placesOf(holder: Place["holder"]): readonly Place[] {
  const places: Place[] = [];
  const rest: Place["holder"][] = [holder];
  for (let one = rest.pop(); one !== undefined; one = rest.pop()) {
    for (const key of Object.keys(one)) {
      const place: Place = { holder: one, key: Array.isArray(one) ? Number(key) : key };
      places.push(place);
      const value = get(place);
      if (typeof value === "object" && value !== null) rest.push(value as Place["holder"]);
    }
  }
  return places;
}

function get({ holder, key }: Place): unknown {
  return (holder as Record<string | number, unknown>)[key];
}

/** As a field of its own, `__proto__` too: JSON has it so. */
function put({ holder, key }: Place, value: unknown): void {
  Object.defineProperty(holder, key, { value: structuredClone(value), writable: true, enumerable: true, configurable: true });
}
