import type { FuzzTarget } from "@turnout/house/fuzz";
import { canonicalIP, parseCIDR } from "../model/addresses.ts";
import { FAMILIES, OBJECT_KINDS } from "../model/api-objects.ts";
import { parseJSON } from "../model/json.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import { NodeView } from "../state/node-view.ts";
import { Store } from "../state/store.ts";

/** Texts that may end in rules: names of objects, addresses, words of the model. Anything else would be somebody's own text. */
const HARMLESS = /^[A-Za-z0-9]?[-A-Za-z0-9._:/[\]]*$/;
const SETTINGS = { ...DEFAULT_SETTINGS, detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16"] } } as const;

/** A list of API objects, each taken as it says it is; then what `node1` makes of all. */
function readObjects(input: Buffer): void {
  const items = parsed(input);
  const store = new Store();
  const views = FAMILIES.map((family) => new NodeView(store, { nodeName: "node1", family, settings: SETTINGS }));
  for (const raw of Array.isArray(items) ? (items as unknown[]) : [items]) {
    const said = (raw as { readonly kind?: unknown } | null | undefined)?.kind;
    store.upsert(OBJECT_KINDS.find((kind) => kind === said) ?? "Service", raw);
  }
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  for (const view of views) checkTexts(view.pull());
}

function parsed(input: Buffer): unknown {
  try {
    return parseJSON(input.toString("utf8"));
  } catch (error) {
    // Whoever parsed it said so already.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Nothing that somebody else chose freely is in what backends get. */
function checkTexts(value: unknown): void {
  if (typeof value === "string" && !HARMLESS.test(value))
    throw new Error(`a text that is not harmless is in a row: ${JSON.stringify(value)}`);
  if (typeof value === "object" && value !== null) for (const part of Object.values(value)) checkTexts(part);
}

/** What reads addresses agrees with itself. */
function readAddresses(input: Buffer): void {
  for (const text of input.toString("utf8").split("\n")) {
    const ip = canonicalIP(text);
    if (ip !== undefined && canonicalIP(ip.text)?.text !== ip.text) throw new Error(`${ip.text} is not canonical`);
    const cidr = parseCIDR(text);
    if (cidr !== undefined && parseCIDR(cidr.text)?.text !== cidr.text) throw new Error(`${cidr.text} is not canonical`);
  }
}

/** What reads API objects. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "api-objects", form: "json", run: readObjects },
  { name: "addresses", form: "text", run: readAddresses },
];
