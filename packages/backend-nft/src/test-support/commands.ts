import type { NftChainSpec, NftCommand, NftElements, NftPartKind, NftRuleStatement, NftSetSpec } from "@turnout/host/nft-statement";

/** Commands about one table of the family ip, in few words. For tests. */
export class Commands {
  readonly #table: string;

  constructor(table: string) {
    this.#table = table;
  }

  get #place(): { readonly family: "ip"; readonly table: string } {
    return { family: "ip", table: this.#table };
  }

  table(): { readonly table: { readonly family: "ip"; readonly name: string } } {
    return { table: { family: "ip", name: this.#table } };
  }

  chain(name: string, base: Partial<NftChainSpec> = {}): { readonly chain: NftChainSpec } {
    return { chain: { ...this.#place, name, ...base } };
  }

  /** A base chain of type filter. */
  hooked(name: string, hook: string, prio: number, type: string = "filter"): { readonly chain: NftChainSpec } {
    return this.chain(name, { type, hook, prio });
  }

  set(name: string, spec: Partial<NftSetSpec> = {}): { readonly set: NftSetSpec } {
    return { set: { ...this.#place, name, ...spec } };
  }

  map(name: string, spec: Partial<NftSetSpec> = {}): { readonly map: NftSetSpec } {
    return { map: { ...this.#place, name, ...spec } };
  }

  rule(chain: string, ...expr: readonly NftRuleStatement[]): NftCommand {
    return { add: { rule: { ...this.#place, chain, expr } } };
  }

  /** Elements of a set or map, each as a key or as a key and a value. */
  elements(verb: "add" | "delete", set: string, ...elements: readonly (string | readonly [key: string, value: string])[]): NftElements {
    const pairs = elements.map((element) => (typeof element === "string" ? [element, ""] : element));
    const [[first = ""] = []] = pairs;
    const parts = first
      .split(" . ")
      .map((part): NftPartKind => (/[.:]/.test(part) ? "address" : /^[a-z]/.test(part) ? "protocol" : "port"));
    return { verb, ...this.#place, set, parts, elements: pairs.map(([key = "", value = ""]) => ({ key, value, comment: "" })) };
  }
}
