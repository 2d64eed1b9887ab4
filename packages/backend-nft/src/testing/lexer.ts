import { Refusal } from "./refusal.ts";
import type { Span } from "./refusal.ts";

/** One word of nft's language. `text` is without the quotes of a quoted string. */
export interface Token extends Span {
  readonly kind: "word" | "number" | "address" | "quoted" | "symbol" | "newline" | "end";
  readonly text: string;
}

// In the order of flex's longest match: what a longer form could begin with comes after it.
const TOKEN = new RegExp(
  [
    String.raw`(?<blank>[ \t]+|\\\n|#[^\n]*)`,
    String.raw`(?<newline>\n)`,
    String.raw`"(?<quoted>[^"\n]*)"`,
    // In brackets it is one word: nothing may stand between them.
    String.raw`\[(?<bracketed>(?:[0-9a-fA-F]{0,4}:){2,7}(?:\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]{0,4}))\]`,
    String.raw`(?<address>(?:[0-9a-fA-F]{0,4}:){2,7}(?:\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]{0,4})|\d+\.\d+\.\d+\.\d+)`,
    String.raw`(?<time>(?:\d+(?:ms|[dhms]))+(?![A-Za-z0-9_]))`,
    String.raw`(?<number>0x[0-9a-fA-F]+|\d+)`,
    String.raw`(?<word>[A-Za-z_][A-Za-z0-9/_.-]*\*?)`,
    String.raw`(?<symbol>==|!=|<=|>=|<<|>>|[-{}();,.:@[\]=<>&|^~!/+*])`,
  ].join("|"),
  "y",
);

/** Cut text into tokens; the last one is the end. @throws {Refusal} for characters nft has no use for. */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const groups = match?.groups;
    if (match === null || groups === undefined) throw new Refusal("syntax error, unexpected junk", { start: at, end: at + 1 });
    const end = TOKEN.lastIndex;
    if (groups["blank"] === undefined) tokens.push({ ...kindOf(groups, match[0]), start: at, end });
    at = end;
  }
  tokens.push({ kind: "end", text: "", start: text.length, end: text.length + 1 });
  return tokens;
}

function kindOf(groups: Readonly<Record<string, string | undefined>>, text: string): Pick<Token, "kind" | "text"> {
  if (groups["word"] !== undefined || groups["time"] !== undefined) return { kind: "word", text };
  if (groups["symbol"] !== undefined) return { kind: "symbol", text };
  if (groups["number"] !== undefined) return { kind: "number", text };
  if (groups["bracketed"] !== undefined) return { kind: "address", text: groups["bracketed"] };
  if (groups["address"] !== undefined) return { kind: "address", text };
  if (groups["quoted"] !== undefined) return { kind: "quoted", text: groups["quoted"] };
  return { kind: "newline", text };
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
