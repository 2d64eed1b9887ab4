import { readingListing } from "@turnout/host/nft";
import type { NftElement, NftTable, NftTableChain } from "@turnout/host";

/** A JSON object of `nft -j`. */
type Json = Readonly<Record<string, unknown>>;

/**
 * Read out of what `nft -j list` printed of one table, or of a set, what netlink gives of it.
 * @throws {ProxyError} `tool_failed` when the text isn't such a listing.
 */
export function listedTable(text: string): NftTable {
  return readingListing(() => tableOf(text));
}

function tableOf(text: string): NftTable {
  const sets = new Map<string, readonly NftElement[]>();
  const chains = new Map<string, NftTableChain & { readonly comments: string[] }>();
  for (const { chain, rule, set, map } of (JSON.parse(text) as { readonly nftables: readonly Readonly<Record<string, Json | undefined>>[] })
    .nftables) {
    const elements = set ?? map;
    if (elements !== undefined) sets.set(String(elements["name"]), ((elements["elem"] ?? []) as readonly unknown[]).map(elementOf));
    if (chain !== undefined)
      chains.set(String(chain["name"]), { hook: hookOf(chain), isDropping: chain["policy"] === "drop", comments: [] });
    if (rule !== undefined) chains.get(String(rule["chain"]))?.comments.push(textOf(rule["comment"]));
  }
  return { sets, chains };
}

function hookOf({ type, hook, prio }: Json): string | undefined {
  return hook === undefined ? undefined : `type ${textOf(type)} hook ${textOf(hook)} priority ${String(prio)}`;
}

function elementOf(listed: unknown): NftElement {
  // A map's is a pair; one with a comment or a timeout is wrapped.
  const [key, value] = Array.isArray(listed) ? (listed as readonly unknown[]) : [listed];
  const wrapped = (key as Json)["elem"] as Json | undefined;
  return {
    key: dataText(wrapped?.["val"] ?? key),
    value: value === undefined ? "" : dataText(value),
    comment: textOf(wrapped?.["comment"]),
  };
}

/** The key of an element, as netlink has it. */
export function keyText(key: unknown): string {
  return dataText(((key as Json)["elem"] as Json | undefined)?.["val"] ?? key);
}

/** A key, a value or a verdict, as nft's language writes it: `10.0.0.1 . 80`, `goto x`, `drop`. */
function dataText(data: unknown): string {
  if (typeof data !== "object" || data === null) return constantText(data);
  const [word = "", detail] = Object.entries(data)[0] ?? [];
  if (word === "concat") return (detail as readonly unknown[]).map(constantText).join(" . ");
  return [word, ...Object.values((detail ?? {}) as Json).map(String)].join(" ");
}

/** nft prints numbers of classes, which are ours of endpoints, as two in hexadecimal; an address has more colons. */
function constantText(constant: unknown): string {
  const [, high, low] = /^([0-9a-f]+):([0-9a-f]+)$/.exec(String(constant)) ?? [];
  return high === undefined || low === undefined ? String(constant) : String(parseInt(high, 16) * 65_536 + parseInt(low, 16));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
