import { usage } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/**
 * Cut a line of `iptables-restore`'s input into words: blanks separate, `"` quotes, and inside of quotes `\` takes the next character as it is.
 *
 * Edges: a quote that isn't closed takes in the line's end.
 * @throws {Refusal} for `-t`, which restore doesn't take.
 * @source iptables/xshared.c add_param_to_argv
 */
export function splitWords(line: string, program: string): readonly string[] {
  const isTable = (word: string): boolean => /^-(?:[^-]*t|-t(?:a(?:b(?:le?)?)?)?$)/.test(word);
  const noTable = (): Refusal => usage(`The -t option cannot be used in ${program}.\n`);
  if (!line.includes('"')) {
    const words = line.split(/[ \t]+/).filter((word) => word !== "");
    if (words.some(isTable)) throw noTable();
    return words;
  }
  const words: string[] = [];
  let word = "";
  let [isOpen, isEscaped, wasQuoted] = [false, false, false];
  const end = (): void => {
    if (word === "" && !wasQuoted) return;
    if (!wasQuoted && isTable(word)) throw noTable();
    words.push(word);
    [word, wasQuoted] = ["", false];
  };
  for (const char of `${line}\n`) {
    if (isEscaped) {
      word += char;
      isEscaped = false;
    } else if (isOpen && char === "\\") isEscaped = true;
    else if (char === '"') {
      isOpen = !isOpen;
      wasQuoted = true;
    } else if (!isOpen && (char === " " || char === "\t" || char === "\n")) end();
    else word += char;
  }
  end();
  return words;
}

/** Write a text as `iptables-save` writes comments and names. @source libxtables xtables_save_string */
export function quoted(text: string): string {
  const escaped = text.replaceAll(/["\\']/g, (char) => `\\${char}`);
  return /^[\w-]+$/.test(text) ? text : `"${escaped}"`;
}
