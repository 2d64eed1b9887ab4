/** Say that a text is one word of a shell's command line. Pure. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
