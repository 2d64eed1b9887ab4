/** A command that a page has the reader type, and what the page says it prints. */
export interface Typed {
  readonly command: string;
  /** Lines; `…` stands for anything within a line, and alone on a line for any lines. */
  readonly prints: string;
  /** The page's line, from 1. */
  readonly line: number;
}

const INDENT = "    ";

/** Find what a Markdown page has the reader type: indented lines that begin with `$ `, each with what is indented after it. */
export function sessionOf(page: string): readonly Typed[] {
  const typed: Typed[] = [];
  let open: { readonly command: string; readonly line: number; readonly prints: string[] } | undefined;
  const close = (): void => {
    if (open !== undefined) typed.push({ ...open, prints: open.prints.join("\n").trimEnd() });
    open = undefined;
  };
  for (const [index, line] of page.split("\n").entries()) {
    if (line.startsWith(`${INDENT}$ `)) {
      close();
      open = { command: line.slice(INDENT.length + 2), line: index + 1, prints: [] };
    } else if (line.startsWith(INDENT) || line === "") open?.prints.push(line.slice(INDENT.length));
    else close();
  }
  close();
  return typed;
}

/** Find a Markdown page's blocks of TypeScript, between fences that say `ts`. */
export function blocksOf(page: string): readonly string[] {
  return [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block = ""]) => block);
}

/** Make the pattern that what is printed has to match as a whole, but for blank space at its end. */
export function patternOf(prints: string): RegExp {
  const source = prints
    .split("\n")
    .map((line) => (line === "…" ? "(?:.*\n)*" : `${line.split("…").map(escape).join(".*")}\n`))
    .join("");
  return new RegExp(`^${source}$`);
}

function escape(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}
