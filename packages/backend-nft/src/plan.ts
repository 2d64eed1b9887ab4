import type { Delta, IPFamily, Plan, Put } from "@turnout/core";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { DESTINATION_MAPS } from "./objects.ts";
import type { ChainObject, DestinationValue, NftObject, NodePortObject, ServiceObject, StickyObject } from "./objects.ts";
import { BASE_CHAINS, tableStatements } from "./skeleton.ts";

/** One nft transaction: statements that take effect together or not at all. */
export interface Transaction {
  readonly statements: readonly string[];
  /** Chains that this transaction empties and that can be deleted a second later. */
  readonly emptied: readonly ChainObject[];
}

/** Chains lie idle this long before they are deleted: kernels before 6.2 notice late that nothing refers to them. */
export const LINGER_MS = 1_000;

/** Elements of one statement; more make nft's parser slow, fewer the text long. */
const ELEMENTS_PER_STATEMENT = 500;
/** Endpoints of new destinations above this many are loaded ahead, in transactions of this size: bounded memory and stalls. */
const STAGED_ELEMENTS = 20_000;

/** Collects statements for one family, elements of one set in a row joined. */
class Writer {
  readonly statements: string[] = [];
  readonly #prefix: string;
  readonly #open = new Map<string, string[]>();

  constructor(family: IPFamily) {
    this.#prefix = `${NFT_FAMILY[family]} ${TABLE}`;
  }

  command(verb: string, rest: string): void {
    this.statements.push(`${verb} ${this.#prefix} ${rest}`);
  }

  element(verb: "add" | "delete", set: string, text: string): void {
    const open = this.#open.get(`${verb} element ${this.#prefix} ${set}`);
    if (open === undefined) this.#open.set(`${verb} element ${this.#prefix} ${set}`, [text]);
    else if (open.push(text) >= ELEMENTS_PER_STATEMENT) this.#flush(`${verb} element ${this.#prefix} ${set}`, open);
  }

  /** Write out all elements collected so far. */
  flush(): void {
    for (const [head, texts] of this.#open) this.#flush(head, texts);
  }

  #flush(head: string, texts: readonly string[]): void {
    this.statements.push(`${head} { ${texts.join(", ")} }`);
    this.#open.delete(head);
  }
}

/**
 * Order a difference: what nothing refers to yet ahead in bounded transactions, everything else in one, and chains that
 * have idled long enough afterwards.
 */
export function planDelta(delta: Delta<NftObject>, family: IPFamily): Plan<Transaction> {
  const staged = stage(delta, family);
  const writer = new Writer(family);
  const chains = delta.put.map(({ after }) => after).filter((object) => object.kind === "chain");
  writeTable(delta, family, writer);
  for (const chain of chains) writer.command("add chain", chainDeclaration(chain));
  for (const chain of chains) writeRules(chain, writer);
  for (const object of delta.remove) if (object.kind !== "chain") writeRemoval(object, writer);
  for (const put of delta.put) writeLeaving(put, writer);
  writer.flush();
  for (const put of delta.put) writeComing(put, writer, staged.keys);
  writer.flush();
  const emptied = delta.remove.filter((object) => object.kind === "chain");
  for (const chain of emptied) writer.command("flush chain", chain.key);
  const steps = [...staged.transactions, { statements: writer.statements, emptied }].filter(({ statements }) => statements.length > 0);
  const due = delta.lingering.filter(({ object, sinceMs }) => object.kind === "chain" && delta.nowMs - sinceMs >= LINGER_MS);
  if (due.length === 0) return { steps };
  const statements = due.map(({ object }) => `delete chain ${NFT_FAMILY[family]} ${TABLE} ${object.key}`);
  return { steps, after: [{ statements, emptied: [] }] };
}

/** A table of another layout goes, with all that is in it; a missing one is made. */
function writeTable({ put, remove }: Delta<NftObject>, family: IPFamily, writer: Writer): void {
  const table = put.find(({ after }) => after.kind === "table");
  if (table !== undefined) {
    if (table.before !== undefined) writer.statements.push(`delete table ${NFT_FAMILY[family]} ${TABLE}`);
    writer.statements.push(...tableStatements(NFT_FAMILY[family]));
  }
  if (remove.some(({ kind }) => kind === "table")) writer.statements.push(`delete table ${NFT_FAMILY[family]} ${TABLE}`);
}

function chainDeclaration({ key }: ChainObject): string {
  const base = BASE_CHAINS[key];
  return base === undefined ? key : `${key} { ${base}; }`;
}

function writeRules(chain: ChainObject, writer: Writer): void {
  // It may be there with other rules (changed, lingering, or somebody's doing): always start from nothing.
  writer.command("flush chain", chain.key);
  for (const [index, rule] of chain.rules.entries()) {
    writer.command("add rule", `${chain.key} ${rule}${index === 0 ? ` comment "${chain.value}"` : ""}`);
  }
}

/** Endpoints of destinations the kernel doesn't know yet, when there are many. */
function stage(delta: Delta<NftObject>, family: IPFamily): { transactions: readonly Transaction[]; keys: ReadonlySet<NftObject> } {
  const fresh = delta.put.flatMap(({ before, after }) => (before === undefined && isDestination(after) ? [after] : []));
  const total = fresh.reduce((sum, { value }) => sum + value.endpoints.length, 0);
  // A table that is being replaced must be gone and back in one transaction.
  const isReplacing = delta.put.some(({ before, after }) => after.kind === "table" && before !== undefined);
  if (total <= STAGED_ELEMENTS || isReplacing) return { transactions: [], keys: new Set() };
  const transactions: Transaction[] = [];
  let writer = new Writer(family);
  writeTable(delta, family, writer);
  let count = 0;
  const close = (): void => {
    writer.flush();
    transactions.push({ statements: writer.statements, emptied: [] });
    writer = new Writer(family);
    count = 0;
  };
  for (const object of fresh) {
    writeEndpoints(object, [], object.value.endpoints, writer);
    if ((count += object.value.endpoints.length) >= STAGED_ELEMENTS) close();
  }
  if (count > 0) close();
  return { transactions, keys: new Set<NftObject>(fresh) };
}

function isDestination(object: NftObject): object is ServiceObject | NodePortObject {
  return object.kind === "service" || object.kind === "nodeport";
}

function writeRemoval(object: Exclude<NftObject, ChainObject>, writer: Writer): void {
  if (object.kind === "table") return;
  if (isDestination(object)) {
    if (object.value.verdict !== "") writer.element("delete", DESTINATION_MAPS[object.kind].verdicts, object.key);
    deleteEndpoints(object, object.value.endpoints, [], writer);
  } else if (object.kind === "sticky") {
    for (const [index, chain] of object.value.entries()) if (chain !== "") writer.element("delete", "sticky", `${object.key} . ${index}`);
  } else {
    writer.element("delete", object.kind, object.key);
  }
}

/** First half of a change: elements that go or change their value are deleted (nft can't replace one in place). */
function writeLeaving({ before, after }: Put<NftObject>, writer: Writer): void {
  if (before === undefined) return;
  if (isDestination(after) && isDestination(before)) {
    const isVerdictKept = verdictText(before.value) === verdictText(after.value);
    if (before.value.verdict !== "" && !isVerdictKept) writer.element("delete", DESTINATION_MAPS[after.kind].verdicts, after.key);
    deleteEndpoints(after, before.value.endpoints, after.value.endpoints, writer);
  } else if (after.kind === "sticky" && before.kind === "sticky") {
    for (const [index, chain] of before.value.entries()) {
      if (chain !== "" && after.value[index] !== chain) writer.element("delete", "sticky", `${after.key} . ${index}`);
    }
  }
}

/** Second half: what is new or has a new value is added. */
function writeComing({ before, after }: Put<NftObject>, writer: Writer, staged: ReadonlySet<NftObject>): void {
  if (isDestination(after)) {
    const old = before !== undefined && isDestination(before) ? before.value : undefined;
    if (!staged.has(after)) writeEndpoints(after, old?.endpoints ?? [], after.value.endpoints, writer);
    if (old !== undefined && verdictText(old) === verdictText(after.value)) return;
    const comment = after.value.comment === "" ? "" : ` comment "${after.value.comment}"`;
    writer.element("add", DESTINATION_MAPS[after.kind].verdicts, `${after.key}${comment} : ${after.value.verdict}`);
  } else if (after.kind === "sticky") {
    writeSticky(after, before?.kind === "sticky" ? before.value : [], writer);
  } else if (after.kind !== "chain" && after.kind !== "table") {
    writer.element("add", after.kind, after.key);
  }
}

function verdictText({ verdict, comment }: DestinationValue): string {
  return `${verdict} ${comment}`;
}

function writeSticky(object: StickyObject, before: readonly string[], writer: Writer): void {
  for (const [index, chain] of object.value.entries()) {
    if (before[index] !== chain) writer.element("add", "sticky", `${object.key} . ${index} : goto ${chain}`);
  }
}

function writeEndpoints(
  { kind, key }: ServiceObject | NodePortObject,
  before: readonly string[],
  after: readonly string[],
  writer: Writer,
): void {
  const map = DESTINATION_MAPS[kind].endpoints;
  for (let index = 0; index < after.length; index++) {
    const endpoint = after[index] ?? "";
    if (before[index] !== endpoint) writer.element("add", map, `${key} . ${index} : ${endpoint}`);
  }
}

function deleteEndpoints(
  { kind, key }: ServiceObject | NodePortObject,
  before: readonly string[],
  after: readonly string[],
  writer: Writer,
): void {
  const map = DESTINATION_MAPS[kind].endpoints;
  for (let index = 0; index < before.length; index++) {
    // An index may be missing on a host that was tampered with; "" stands for such a gap.
    if (before[index] !== "" && before[index] !== after[index]) writer.element("delete", map, `${key} . ${index}`);
  }
}

/** The plan as text a person (and `nft -f`) can read. */
export function explainPlan({ steps, after = [] }: Plan<Transaction>): string {
  const parts = [...steps, ...after].map(({ statements }, index) => `# transaction ${index + 1}\n${statements.join("\n")}\n`);
  return parts.length === 0 ? "# nothing to do\n" : parts.join("\n");
}
