import { tokenize, tokenName } from "./lexer.ts";
import type { Token } from "./lexer.ts";
import { Refusal } from "./refusal.ts";
import type { Span } from "./refusal.ts";
import { RESERVED_WORDS } from "./reserved-words.ts";

const LONGEST_NUMBER = 0xffff_ffff_ffff_ffffn;

/** Walks over the tokens of a text. Every `take…` throws a {@link Refusal} when something else comes next. */
export class TokenReader {
  readonly text: string;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.text = text;
    this.#tokens = tokenize(text);
  }

  /** What comes next, or `ahead` tokens later. */
  peek(ahead: number = 0): Token {
    const token = this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)];
    if (token === undefined) throw new Error("there is always an end token");
    return token;
  }

  /** Where the next token begins. */
  get start(): number {
    return this.peek().start;
  }

  /** From a start to the end of the token that was taken last. */
  since(start: number): Span {
    return { start, end: this.#tokens[this.#at - 1]?.end ?? start + 1 };
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  /** Tell whether a word or symbol comes next. */
  isAt(text: string): boolean {
    const { kind, text: found } = this.peek();
    return found === text && (kind === "word" || kind === "symbol");
  }

  /** Take a word or symbol if it comes next. */
  accept(text: string): boolean {
    if (!this.isAt(text)) return false;
    this.#at++;
    return true;
  }

  expect(text: string): Token {
    if (!this.isAt(text)) throw this.unexpected();
    return this.next();
  }

  /** One of some words. */
  expectOneOf<W extends string>(words: readonly W[]): W {
    const found = words.find((word) => this.isAt(word));
    if (found === undefined) throw this.unexpected();
    this.#at++;
    return found;
  }

  /** A name that nft's grammar doesn't use itself. */
  expectName(): Token {
    const token = this.peek();
    // An address is a string to nft.
    const isString = token.kind === "address" || (token.kind === "word" && !RESERVED_WORDS.has(token.text) && !token.text.endsWith("*"));
    if (!isString) throw this.unexpected("expecting string");
    return this.next();
  }

  /** A number; hexadecimal, too. */
  expectNumber(): number {
    const token = this.peek();
    if (token.kind !== "number" || BigInt(token.text) > LONGEST_NUMBER) throw this.unexpected();
    this.#at++;
    return Number(token.text);
  }

  expectQuoted(): Token {
    const token = this.peek();
    if (token.kind !== "quoted") throw this.unexpected();
    return this.next();
  }

  /** Skip line ends; inside braces they mean nothing. */
  skipNewlines(): void {
    while (this.peek().kind === "newline") this.#at++;
  }

  /** `;` or the end of a line, and any more of them. */
  expectSeparator(): void {
    if (!this.isAt(";") && this.peek().kind !== "newline") throw this.unexpected();
    this.skipSeparators();
  }

  skipSeparators(): void {
    while (this.isAt(";") || this.peek().kind === "newline") this.#at++;
  }

  /** What nft says of the next token. */
  unexpected(expecting: string = ""): Refusal {
    const token = this.peek();
    return new Refusal(`syntax error, unexpected ${tokenName(token)}${expecting === "" ? "" : `, ${expecting}`}`, token);
  }
}
