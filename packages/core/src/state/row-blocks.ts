import type { ServicePort } from "../model/rows.ts";
import type { NodeFacts } from "./node-place.ts";
import type { ServiceVersion } from "./service-version.ts";

/** Rows of some Services as many nodes have them: the same object for all these nodes, for as long as none of the rows is another. */
export type SharedRows = readonly ServicePort[];

/** Endpoints in one block: about 64 KiB of rows, so that one change makes little of what was shared anew. */
const WEIGHT_MAX = 1_500;
/** Kinds of nodes, mostly zones, for which one block keeps rows. */
const KINDS_MAX = 16;

const NONE: ReadonlyMap<string, ServiceVersion> = new Map();

/** Some Services of a table. */
class RowBlock {
  readonly #versions = new Map<string, ServiceVersion>();
  /** Those that tell nodes apart by more than their rules. */
  readonly #choosy = new Map<string, ServiceVersion>();
  readonly #shared = new Map<string, SharedRows>();
  #weight = 0;

  get isFull(): boolean {
    return this.#weight >= WEIGHT_MAX;
  }

  /** So little is left that it is better spread over other blocks. */
  get isSparse(): boolean {
    return this.#weight < WEIGHT_MAX / 4;
  }

  get versions(): ReadonlyMap<string, ServiceVersion> {
    return this.#versions;
  }

  set(key: string, version: ServiceVersion): void {
    this.delete(key);
    this.#versions.set(key, version);
    if (version.isChoosy) this.#choosy.set(key, version);
    this.#weight += version.weight;
  }

  delete(key: string): void {
    this.#weight -= this.#versions.get(key)?.weight ?? 0;
    this.#versions.delete(key);
    this.#choosy.delete(key);
    this.#shared.clear();
  }

  /** The rows as a node has them whose name says nothing to any of these Services. */
  sharedAt(node: NodeFacts): SharedRows {
    let kind = node.rules;
    for (const version of this.#choosy.values()) kind += `|${version.kindOf(node)}`;
    const known = this.#shared.get(kind);
    if (known !== undefined) return known;
    if (this.#shared.size >= KINDS_MAX) this.#shared.clear();
    const rows = [...this.#versions.values()].flatMap((version) => version.sharedRowsAt(node));
    this.#shared.set(kind, rows);
    return rows;
  }
}

/**
 * All Services of a table in blocks, so that what most nodes are told can be made once, block by block.
 *
 * Shape: a node's state is the shared rows of all blocks, in which the rows of Services that are {@link RowBlocks.knowing} it take the place of
 * rows with the same keys.
 */
export class RowBlocks {
  readonly #blocks = new Set<RowBlock>();
  readonly #blockOf = new Map<string, RowBlock>();
  /** Which Services tell a node from others, by its name: one in a hundred does. */
  readonly #knowing = new Map<string, Map<string, ServiceVersion>>();
  /** Takes in what is new. */
  #open: RowBlock | undefined;

  /** Put a Service in, change it or (undefined) take it out. */
  set(key: string, before: ServiceVersion | undefined, version: ServiceVersion | undefined): void {
    for (const name of before?.nodeNames ?? []) this.#forget(name, key);
    for (const name of version?.nodeNames ?? []) this.#know(name, key, version as ServiceVersion);
    const block = this.#blockOf.get(key);
    if (version === undefined) this.#delete(key, block);
    else if (block === undefined) this.#add(key, version);
    else block.set(key, version);
  }

  /** The rows of all blocks as most nodes of this one's kind have them. */
  sharedAt(node: NodeFacts): readonly SharedRows[] {
    return [...this.#blocks].map((block) => block.sharedAt(node));
  }

  /** The Services that tell this node from others, by their keys. */
  knowing(nodeName: string): ReadonlyMap<string, ServiceVersion> {
    return this.#knowing.get(nodeName) ?? NONE;
  }

  #know(name: string, key: string, version: ServiceVersion): void {
    const known = this.#knowing.get(name);
    if (known === undefined) this.#knowing.set(name, new Map([[key, version]]));
    else known.set(key, version);
  }

  #forget(name: string, key: string): void {
    const known = this.#knowing.get(name);
    known?.delete(key);
    if (known?.size === 0) this.#knowing.delete(name);
  }

  #add(key: string, version: ServiceVersion): void {
    if (this.#open === undefined || this.#open.isFull) this.#blocks.add((this.#open = new RowBlock()));
    this.#open.set(key, version);
    this.#blockOf.set(key, this.#open);
  }

  #delete(key: string, block: RowBlock | undefined): void {
    if (block === undefined) return;
    block.delete(key);
    this.#blockOf.delete(key);
    if (block === this.#open || !block.isSparse) return;
    this.#blocks.delete(block);
    for (const [other, version] of block.versions) this.#add(other, version);
  }
}
