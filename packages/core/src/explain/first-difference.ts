import { objectId } from "../contract/backend.ts";
import type { Backend, KernelObject, ObjectWords, Plain } from "../contract/backend.ts";
import { plainWords } from "../contract/plain-words.ts";
import { isEqual } from "../model/equal.ts";
import type { Cause } from "./answer.ts";

/** How an object is called in the tool's words, and what shows it. */
export type DescribeObject<K> = NonNullable<Backend<unknown, K & KernelObject, unknown>["describe"]>;

/** What the kernel holds of the objects that a packet meets. */
export interface HeldObjects<K> {
  /** Those that should be there, in the order in which the packet meets them. */
  readonly wanted: readonly K[];
  /** Those that would be there for a Service that is gone. */
  readonly unwanted: readonly K[];
  /** What the host holds under the identities of both. */
  readonly held: ReadonlyMap<string, K>;
  /** What belongs to these, is there, and is none of them; absent: nothing. */
  readonly alongside?: readonly K[];
}

const FIX =
  "the proxy writes what is missing when it compares: restart it on this node (it adopts what is right), or run its command line once with --once";

/** So many differences are named. */
const NAMED_MAX = 3;

/**
 * Name the first objects that the host lacks, or holds otherwise than it should. Pure.
 *
 * Shape: removed, changed and added, as the log says of what others do. Nobody can tell from the kernel alone whether an object was ever there.
 * Edges: undefined where all are as they should be. One that is whole, as other flags make it, goes before all others: they differ for the same reason.
 */
export function firstDifference<K extends KernelObject>(
  { wanted, unwanted, held, alongside = [] }: HeldObjects<K>,
  describe: DescribeObject<K> = plainWords,
): Cause | undefined {
  const different = wanted.flatMap((object) => {
    const found = held.get(objectId(object));
    return found !== undefined && isEqual(found.value, object.value) ? [] : [{ object, found, words: describe(object, found) }];
  });
  const [first] = different;
  const isOfOthers = ({ words }: Difference<K>): boolean => words.isOfOtherSettings === true;
  // What packets go as well without tells nothing where more is missing.
  const ofOthers = different.find((one) => isOfOthers(one) && one.found !== undefined) ?? (different.every(isOfOthers) ? first : undefined);
  if (ofOthers !== undefined) return otherFlags(ofOthers, different.find(({ words }) => words.differs !== undefined)?.words);
  if (first !== undefined) {
    const isAll = different.length === wanted.length && different.every((one) => one.found === undefined);
    return kernelCause(different, isAll ? 1 : NAMED_MAX, isAll ? " and all else that this takes" : "");
  }
  const left = unwanted.find((object) => held.has(objectId(object)));
  if (left === undefined) return tooMuch(alongside, describe);
  const words = describe(left);
  return {
    id: "kernel_stale",
    says: `added to the kernel, or left in it: ${words.what}, and no Service has that address and port any more`,
    ...shown(words),
    fix: FIX,
  };
}

/** An object that the host lacks, or holds otherwise. */
interface Difference<K> {
  readonly object: K;
  readonly found: K | undefined;
  readonly words: ObjectWords;
}

/** @param others what those are that are counted alone; "": just more. */
function kernelCause<K extends KernelObject>(different: readonly Difference<K>[], namedMax: number, others: string): Cause {
  const all = different.map(differenceReported);
  const [first, ...also] = all.slice(0, namedMax);
  const more = all.length - 1 - also.length;
  const isRemoved = first?.what === "removed";
  const head = isRemoved ? "removed from the kernel, or never written to it" : "changed in the kernel";
  const named = [`${head}: ${first?.says}`, ...also.map(({ what, says }) => `also ${what}: ${says}`)];
  return {
    id: isRemoved ? "kernel_missing" : "kernel_changed",
    says: `${named.join("; ")}${more === 0 ? "" : `${others} (${others === "" ? "and " : ""}${more} more)`}`,
    ...(all.length === 1 ? {} : { differences: all.map(({ what, says }) => `${what}: ${says}`) }),
    ...shown(...different.slice(0, namedMax).map(({ words }) => words)),
    fix: FIX,
  };
}

function differenceReported<K extends KernelObject>({
  object,
  found,
  words,
}: Difference<K>): {
  readonly what: "removed" | "changed";
  readonly says: string;
} {
  if (found === undefined || words.isGone === true) return { what: "removed", says: words.what };
  return { what: "changed", says: words.differs ?? `${words.what}${detail(object, found)}` };
}

function tooMuch<K>([first, ...others]: readonly K[], describe: (object: K) => ObjectWords): Cause | undefined {
  if (first === undefined) return undefined;
  const words = describe(first);
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return {
    id: "kernel_stale",
    says: `added to the kernel, or left in it: ${words.what}${more}, which no Service asks for`,
    ...shown(words),
    fix: FIX,
  };
}

/** @param alongside what the kernel holds otherwise, too: flags may explain it, or may not. */
function otherFlags<K>({ words, found }: Difference<K>, alongside?: ObjectWords): Cause {
  const how = found === undefined ? "is not there, and other flags make none" : "is whole, and another one than these flags make";
  return {
    id: "other_flags",
    isSure: false,
    says: `the rules in the kernel were made with other flags than this command was told, or by another version of Turnout: ${words.what} ${how}. So the rules can't be compared, and the steps may be wrong${alongside === undefined ? "" : `. Besides, which flags need not explain, ${alongside.differs}`}`,
    ...shown(words, ...(alongside === undefined ? [] : [alongside])),
    fix: "give the flags that the proxy has (--config, --node-name, --cluster-cidr, --service-metrics, --backend-option and so on), or, where the proxy runs, ask it: leave out --source, --backend, --config and --node-name",
  };
}

function shown(...words: readonly ObjectWords[]): Pick<Cause, "show"> {
  const show = [...new Set(words.flatMap((one) => one.show ?? []))];
  return show.length === 0 ? {} : { show };
}

/** What differs: the fields, or the whole where that is short. A digest says nothing to anybody. */
function detail({ value: wanted }: KernelObject, { value: found }: KernelObject): string {
  const fields = (value: Plain): Readonly<Record<string, unknown>> =>
    typeof value === "object" && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : { "": value };
  const [a, b] = [fields(wanted), fields(found)];
  const names = Object.keys({ ...a, ...b }).filter((name) => !isEqual(a[name], b[name]) && !isDigest(a[name]));
  if (names.length === 0) return "";
  return `: ${names.map((name) => `${name === "" ? "" : `${name} `}${insteadText(b[name], a[name])}`).join(", ")}`;
}

/** One text instead of another, both from a little before where they begin to differ. */
function insteadText(found: unknown, wanted: unknown): string {
  const texts = [found, wanted].map((value) => JSON.stringify(value) ?? "nothing");
  const [one = "", other = ""] = texts;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const isLong = texts.some((text) => text.length > SHORT);
  const start = isLong ? Math.max(same - BEFORE, 0) : 0;
  const [a = "", b = ""] = texts.map(
    (text) => `${start > 0 ? "…" : ""}${text.slice(start, start + SHORT)}${text.length > start + SHORT ? "…" : ""}`,
  );
  return `${a} instead of ${b}`;
}

const SHORT = 60;
/** What is shown of what both have. */
const BEFORE = 15;

function isDigest(value: unknown): boolean {
  return typeof value === "string" && /(?:^|\W)[0-9a-f]{12,}(?:\W|$)/.test(value);
}
