import { objectId } from "../contract/backend.ts";
import type { Backend, KernelObject, Plain } from "../contract/backend.ts";
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
}

const MEND =
  "the proxy writes what is missing when it compares: restart it on this node (it adopts what is right), or run its command line once with --once";

/**
 * Name the first object that the host lacks, or holds otherwise than it should. Pure.
 *
 * Edges: undefined where all are as they should be.
 */
export function firstDifference<K extends KernelObject>(
  { wanted, unwanted, held }: HeldObjects<K>,
  describe: DescribeObject<K> = plainWords,
): Cause | undefined {
  const isSame = (object: K): boolean => {
    const found = held.get(objectId(object));
    return found !== undefined && isEqual(found.value, object.value);
  };
  const different = wanted.filter((object) => !isSame(object));
  const [first] = different;
  if (first !== undefined) {
    const { what, show } = describe(first);
    const found = held.get(objectId(first));
    const others = different.length === 1 ? "" : ` (and ${different.length - 1} more)`;
    const says =
      found === undefined
        ? `the kernel lacks ${what}${others}`
        : `the kernel has another ${what} than it should${others}${detail(first, found)}`;
    return { id: found === undefined ? "kernel_missing" : "kernel_changed", says, ...(show === undefined ? {} : { show }), mend: MEND };
  }
  const left = unwanted.find((object) => held.has(objectId(object)));
  if (left === undefined) return undefined;
  const { what, show } = describe(left);
  return {
    id: "kernel_stale",
    says: `the kernel still has ${what}, and no Service has that address and port any more`,
    ...(show === undefined ? {} : { show }),
    mend: MEND,
  };
}

/** What differs: the fields, or the whole where that is short. */
function detail({ value: wanted }: KernelObject, { value: found }: KernelObject): string {
  const short = (value: unknown): string => {
    const text = JSON.stringify(value) ?? "nothing";
    return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
  };
  const fields = (value: Plain): Readonly<Record<string, unknown>> =>
    typeof value === "object" && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : { "": value };
  const [a, b] = [fields(wanted), fields(found)];
  const names = Object.keys({ ...a, ...b }).filter((name) => !isEqual(a[name], b[name]));
  return `: ${names.map((name) => `${name === "" ? "" : `${name} `}${short(b[name])} instead of ${short(a[name])}`).join(", ")}`;
}

const SHORT = 60;

/** Words for a backend that has none of its own. */
export function plainWords({ kind, key }: KernelObject): { readonly what: string; readonly show?: string } {
  return { what: `${kind} ${key}` };
}
