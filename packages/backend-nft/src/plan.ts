import type { Delta, IPFamily, Plan } from "@turnout/core/backend";
import { nftStatementText } from "@turnout/host/nft-statement";
import type { NftStatement } from "@turnout/host/nft-statement";
import { NFT_FAMILY, TABLE } from "./names.ts";
import type { ChainObject, LargePoolObject, NftObject } from "./objects.ts";
import { mapOf, tableCommands } from "./skeleton.ts";
import {
  chainOf,
  ELEMENTS_PER_STATEMENT,
  isDestination,
  writeAhead,
  writeChains,
  writeComing,
  writeLeaving,
  Writer,
  writeRemoval,
} from "./statements.ts";
import type { DestinationObject } from "./statements.ts";

/** One nft transaction: statements that take effect together or not at all. */
export interface Transaction {
  readonly statements: readonly NftStatement[];
  /** Chains that this transaction empties and that can be deleted a second later. */
  readonly emptied: readonly ChainObject[];
  /** Idle chains that it deletes and nothing else; each can be deleted by itself, too. */
  readonly deleted: readonly ChainDeletion[];
}

/** The way to delete one chain. */
export interface ChainDeletion {
  readonly chain: ChainObject;
  readonly statement: NftStatement;
}

/** Endpoints of new destinations above this many are loaded ahead, in transactions of this size: bounded memory and stalls. */
const STAGED_ELEMENTS = 20_000;

/**
 * Order a difference in up to three kinds of transactions; the middle one is the change, the others go unnoticed.
 *
 * Shape: (1) new chains and, when there are many, the endpoints of new destinations: nothing refers to them yet. (2) the
 * change. (3) endpoints at indexes that only the rules before the change picked. Last: deletion of chains that have idled long enough.
 * Edges: a packet under way keeps the rules of its arrival while its map lookups see the newest elements, so a chain must
 * be there before an element names it, and an endpoint must outlive the rule that may pick it. A table of another
 * layout is replaced in one transaction.
 */
export function planDelta(delta: Delta<NftObject>, family: IPFamily): Plan<Transaction> {
  const table = delta.put.find(({ after }) => after.kind === "table");
  const isReplacing = table?.before !== undefined;
  const nftFamily = NFT_FAMILY[family];
  const early = new Writer(family);
  const main = new Writer(family);
  const late = new Writer(family);
  const isDeleting = isReplacing || delta.remove.some(({ kind }) => kind === "table");
  if (isDeleting) main.commands({ delete: { table: { family: nftFamily, name: TABLE } } });
  const ahead = isReplacing ? main : early;
  if (table?.after.kind === "table") ahead.commands(...tableCommands(nftFamily, table.after.value));
  for (const { after } of delta.put) if (after.kind === "map") ahead.commands({ add: mapOf(nftFamily, after.key) });
  const newChains = delta.put.flatMap(({ before, after }) => (after.kind === "chain" && before === undefined ? [after] : []));
  const changedChains = delta.put.flatMap(({ before, after }) => (after.kind === "chain" && before !== undefined ? [after] : []));
  writeChains(newChains, nftFamily, ahead);
  const staged = isReplacing ? NOTHING_STAGED : stageEndpoints(delta, family);
  writeChains(changedChains, nftFamily, main);
  for (const object of delta.remove) writeRemoval(object, main, late);
  for (const put of delta.put) writeLeaving(put, main, late);
  main.flush();
  late.flush();
  // No rule asks them any more, and nothing is in them.
  if (!isDeleting) for (const { kind, key } of delta.remove) if (kind === "map") late.commands({ delete: mapOf(nftFamily, key) });
  for (const put of delta.put) writeComing(put, main, staged.objects);
  main.flush();
  const emptied = delta.remove.filter((object) => object.kind === "chain");
  for (const { key } of emptied) main.commands({ flush: chainOf(nftFamily, key) });
  const change: Transaction = { ...quiet(main), emptied };
  const steps = [quiet(early), ...staged.transactions, change, ...inParts(late), deletionOf(delta, family)];
  return { steps: steps.filter(({ statements }) => statements.length > 0) };
}

/** The plan as text a person (and `nft -f`) can read. */
export function explainPlan({ steps }: Plan<Transaction>): string {
  const parts = steps.map(({ statements }, index) => `# transaction ${index + 1}\n${statements.map(nftStatementText).join("\n")}\n`);
  return parts.length === 0 ? "# nothing to do\n" : parts.join("\n");
}

/** What was loaded ahead. */
interface Staged {
  readonly transactions: readonly Transaction[];
  readonly objects: ReadonlySet<NftObject>;
}

const NOTHING_STAGED: Staged = { transactions: [], objects: new Set() };

function quiet(writer: Writer): Transaction {
  return quietly(writer.finish());
}

function quietly(statements: readonly NftStatement[]): Transaction {
  return { statements, emptied: [], deleted: [] };
}

/** What goes unnoticed need not go at once. */
function inParts(writer: Writer): readonly Transaction[] {
  const statements = writer.finish();
  const size = STAGED_ELEMENTS / ELEMENTS_PER_STATEMENT;
  return Array.from({ length: Math.ceil(statements.length / size) }, (_, part) =>
    quietly(statements.slice(part * size, (part + 1) * size)),
  );
}

/** The transaction that deletes idle chains; without statements where there are none. */
function deletionOf({ lingering }: Delta<NftObject>, family: IPFamily): Transaction {
  const deleted = lingering.flatMap(({ object }) =>
    object.kind === "chain" ? [{ chain: object, statement: { delete: chainOf(NFT_FAMILY[family], object.key) } }] : [],
  );
  return { ...quietly(deleted.map(({ statement }) => statement)), deleted };
}

function stageEndpoints({ put }: Delta<NftObject>, family: IPFamily): Staged {
  const fresh: (DestinationObject | LargePoolObject)[] = [];
  let total = 0;
  for (const { before, after } of put) {
    if (before !== undefined || !(isDestination(after) || after.kind === "large-pool")) continue;
    fresh.push(after);
    total += endpointCount(after);
  }
  if (total <= STAGED_ELEMENTS) return NOTHING_STAGED;
  const transactions: Transaction[] = [];
  let writer = new Writer(family);
  let count = 0;
  for (const [index, object] of fresh.entries()) {
    writeAhead(object, writer);
    count += endpointCount(object);
    if (count < STAGED_ELEMENTS && index < fresh.length - 1) continue;
    transactions.push(quiet(writer));
    writer = new Writer(family);
    count = 0;
  }
  return { transactions, objects: new Set<NftObject>(fresh) };
}

function endpointCount(object: DestinationObject | LargePoolObject): number {
  if (object.kind === "large-pool") return object.value.length;
  return [object.value.cluster, object.value.local].reduce((sum, places) => sum + places.filter((place) => place !== "").length, 0);
}
