import { printCommand } from "./print.ts";
import type { NftCommand } from "./syntax.ts";

/** What a part of an element's key or data is. */
export type NftPartKind = "address" | "protocol" | "port" | "number";

/** One element that is to come or to go, in the words of nft's language. */
export interface NftElementWrite {
  /** The parts of its key, joined; without the last one where that is `place`: `10.96.0.1 . tcp . 80`. */
  readonly key: string;
  /** The last part of its key, a number: lists share what comes before it. */
  readonly place?: number;
  /** What a map's element leads to: `goto refuse`, `drop`, `10.1.1.3 . 8080`; "" in a set, and for one that goes. */
  readonly value: string;
  /** "" for none; up to 128 bytes of ASCII. */
  readonly comment: string;
}

/** Elements of one set or map that are to come or to go, as a part of a transaction. */
export interface NftElements {
  readonly verb: "add" | "delete";
  readonly family: "ip" | "ip6";
  readonly table: string;
  readonly set: string;
  /** What the parts of a key are, `place` included. */
  readonly parts: readonly NftPartKind[];
  readonly elements: readonly NftElementWrite[];
}

/** A part of a transaction: a command that nft has to compile, or elements, which the kernel takes as they are. */
export type NftStatement = NftCommand | NftElements;

/** Whether a part of a transaction is about elements. */
export function isElements(statement: NftStatement): statement is NftElements {
  return "elements" in statement;
}

/** A statement as nft's language writes it. */
export function nftStatementText(statement: NftStatement): string {
  if (!isElements(statement)) return printCommand(statement);
  const { verb, family, table, set, elements } = statement;
  return `${verb} element ${family} ${table} ${set} { ${elements.map(elementText).join(", ")} }`;
}

function elementText({ key, place, value, comment }: NftElementWrite): string {
  const said = comment === "" ? "" : ` comment "${comment}"`;
  return `${key}${place === undefined ? "" : ` . ${place}`}${said}${value === "" ? "" : ` : ${value}`}`;
}
