import { Refusal } from "./refusal.ts";
import type { Span } from "./refusal.ts";

/** One word of nft's language. `text` is without the quotes of a quoted string, and without the brackets of an address. */
export interface Token extends Span {
  readonly kind: "word" | "number" | "address" | "quoted" | "symbol" | "newline" | "end";
  readonly text: string;
}

const BLANK = /(?:[ \t]+|\\\n|#[^\n]*)+/y;
const QUOTED = /"[^"\n]*"/y;
const IPV6 = String.raw`(?:[0-9a-fA-F]{0,4}:){2,7}(?:\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]{0,4})`;
const COLONS = new RegExp(IPV6, "y");
/** One word to nft: nothing may stand between the brackets and the address. */
const BRACKETED = new RegExp(String.raw`\[${IPV6}\]`, "y");
/** An IPv4 address, a time (`3h30m`), a number: what begins with a digit, longer forms first. */
const DIGITS = /\d+\.\d+\.\d+\.\d+|(?:\d+(?:ms|[dhms]))+(?![A-Za-z0-9_])|0x[0-9a-fA-F]+|\d+/y;
const WORD = /[A-Za-z_][A-Za-z0-9/_.-]*\*?/y;
const SYMBOL = /[=!<>]=|<<|>>|[-{}();,.:@[\]=<>&|^~!/+*]/y;

/** Cut text into tokens; the last one is the end. @throws {Refusal} for characters nft has no use for. */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let start = endOf(BLANK, text, 0) ?? 0;
  while (start < text.length) {
    const token = tokenAt(text, start);
    tokens.push(token);
    start = endOf(BLANK, text, token.end) ?? token.end;
  }
  tokens.push({ kind: "end", text: "", start: text.length, end: text.length + 1 });
  return tokens;
}

/** Where what a pattern matches at `at` ends. */
function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function tokenAt(text: string, start: number): Token {
  const first = text.charCodeAt(start);
  const token = (kind: Token["kind"], end: number, border: 0 | 1 = 0): Token => ({
    kind,
    text: text.slice(start + border, end - border),
    start,
    end,
  });
  if (first === 10) return token("newline", start + 1);
  const quoted = first === 34 ? endOf(QUOTED, text, start) : undefined;
  if (quoted !== undefined) return token("quoted", quoted, 1);
  const bracketed = first === 91 ? endOf(BRACKETED, text, start) : undefined;
  if (bracketed !== undefined) return token("address", bracketed, 1);
  const ipv6 = mayBeginIPv6(text, start) ? endOf(COLONS, text, start) : undefined;
  if (ipv6 !== undefined) return token("address", ipv6);
  if (first >= 48 && first <= 57) {
    const end = endOf(DIGITS, text, start) ?? start + 1;
    const isTime = !text.startsWith("0x", start) && text.charCodeAt(end - 1) > 57;
    return token(text.slice(start, end).includes(".") ? "address" : isTime ? "word" : "number", end);
  }
  const word = endOf(WORD, text, start);
  if (word !== undefined) return token("word", word);
  const symbol = endOf(SYMBOL, text, start);
  if (symbol !== undefined) return token("symbol", symbol);
  throw new Refusal("syntax error, unexpected junk", { start, end: start + 1 });
}

/** Tell whether up to four hexadecimal digits and a colon come next: cheaper than asking for the whole address. */
function mayBeginIPv6(text: string, start: number): boolean {
  for (let at = start; at <= start + 4; at++) {
    const code = text.charCodeAt(at);
    if (code === 58) return true;
    const isHex = (code >= 48 && code <= 57) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70);
    if (!isHex) return false;
  }
  return false;
}

/** Call a token what nft's parser calls it. */
export function tokenName({ kind, text }: Token): string {
  switch (kind) {
    case "end":
      return "end of file";
    case "newline":
      return "newline";
    case "number":
      return "number";
    case "quoted":
      return "quoted string";
    case "address":
      return "string";
    case "symbol":
      return `'${text}'`;
    case "word":
      return text;
  }
}
