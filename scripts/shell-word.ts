/** Say that a text is one word of a shell's command line. Pure. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Find the flags that the command's launcher passes to Node, from its text. Pure. @throws {Error} when it starts Node in another way. */
export function launcherFlags(launcher: string): readonly string[] {
  const flags = /^exec "\$node" (.*) "\$main" "\$@"$/m.exec(launcher)?.[1];
  if (flags === undefined) throw new Error("packages/client/launcher.sh does not start Node as it is known here");
  return flags.split(" ");
}
