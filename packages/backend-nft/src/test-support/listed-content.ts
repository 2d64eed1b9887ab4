import { isClientsMap } from "../names.ts";

/** What to leave out of a listing besides the time that elements have left. */
export interface ContentOptions {
  /** Handles differ once a transaction was refused; those of tables are counted over the namespace's life and never compared. */
  readonly withHandles?: boolean;
  /** What packets wrote into maps of clients. */
  readonly withoutClients?: boolean;
}

/**
 * What `nft -j list ruleset` says, an entry each, whatever the order of elements and the time they have left. Of rules only where they are and their
 * comments: nft lists them in other words than it is given. What they do is compared otherwise.
 * @throws {SyntaxError}
 */
export function contentOf(text: string, { withHandles = false, withoutClients = false }: ContentOptions = {}): readonly string[] {
  const { nftables } = JSON.parse(text) as { readonly nftables: readonly Readonly<Record<string, Readonly<Record<string, unknown>>>>[] };
  return nftables.slice(1).map((entry) => {
    const { map, rule } = entry;
    const kept =
      rule !== undefined
        ? { rule: { ...rule, expr: undefined } }
        : withoutClients && map !== undefined && isClientsMap(String(map["name"]))
          ? { map: { ...map, elem: undefined } }
          : entry;
    return JSON.stringify(normal(kept, withHandles && entry["table"] === undefined));
  });
}

function normal(value: unknown, withHandles: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => normal(item, withHandles));
  if (typeof value !== "object" || value === null) return value;
  const masked = maskedPrefix(value);
  if (masked !== undefined) return normal(masked, withHandles);
  // A statement that updates a set is listed with the counter (stmt) that the set's own declaration gives to elements.
  const left = Object.entries(value).filter(([key]) => key !== "expires" && key !== "stmt" && (withHandles || key !== "handle"));
  return Object.fromEntries(
    left.map(([key, inner]): [string, unknown] => {
      const made = normal(inner, withHandles);
      return [key, Array.isArray(made) && (key === "elem" || key === "set") ? made.map((item) => JSON.stringify(item)).sort() : made];
    }),
  );
}

/** nft lists a comparison with the highest bits of a mark as one with a prefix: the same with a mask. */
function maskedPrefix(value: object): object | undefined {
  const { left, right } = value as {
    readonly left?: object;
    readonly right?: { readonly prefix?: { readonly addr: unknown; readonly len: number } };
  };
  if (left === undefined || !("meta" in left) || typeof right?.prefix?.addr !== "number") return undefined;
  return { ...value, left: { "&": [left, 2 ** 32 - 2 ** (32 - right.prefix.len)] }, right: right.prefix.addr };
}

/** What is in one of two listings' contents and not in the other; undefined when they say the same. */
export function differenceOf(
  real: readonly string[],
  fake: readonly string[],
): { readonly real: unknown; readonly fake: unknown } | undefined {
  if (JSON.stringify(real) === JSON.stringify(fake)) return undefined;
  const without = (lines: readonly string[], others: readonly string[]): readonly string[] =>
    lines.filter((line) => !others.includes(line)).slice(0, 5);
  return { real: without(real, fake), fake: without(fake, real) };
}
