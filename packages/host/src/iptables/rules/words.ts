/** Cut a line into words as the tools do: blanks separate, except inside of quotes. Quotes stay; see {@link unquoted}. Pure. */
export function rawWords(line: string): readonly string[] {
  return line.match(/(?:"(?:\\[^]|[^"\\])*(?:"|$)|[^ \t\n"])+/g) ?? [];
}

/**
 * A word without its quotes; inside of quotes `\` takes the next character as it is. Pure.
 *
 * Edges: a quote that isn't closed takes in the line's end.
 * @source iptables/xshared.c add_param_to_argv
 */
export function unquoted(word: string): string {
  if (!word.includes('"')) return word;
  return word.replaceAll(/"((?:\\[^]|[^"\\])*)("|$)/g, (_quoted, inside: string, end: string) => {
    return inside.replaceAll(/\\([^])/g, "$1") + (end === "" ? "\n" : "");
  });
}

/** Write a text as `iptables-save` writes comments and names. Pure. @source libxtables xtables_save_string */
export function quoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `"${text.replaceAll(/["\\']/g, (char) => `\\${char}`)}"`;
}
