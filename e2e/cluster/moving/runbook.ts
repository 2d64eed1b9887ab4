/** The commands of one section of a page of docs, whole: those set in by at least four, in order, as a shell takes them. */
const SET_IN = /^(?: {8}| {4})(?! )(.*)$/;

/**
 * Read the commands that a section tells people to type, each with the lines that it goes on by. Pure.
 *
 * Edges: what opens an editor is for people, and left out.
 * @throws {Error} when the page has no such section, or it has no commands.
 */
export function commandsOf(page: string, heading: string): readonly string[] {
  const [, section] = page.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`no section "${heading}"`);
  const commands: string[] = [];
  let isOpen = false;
  for (const line of section.split(/\n## /)[0]?.split("\n") ?? []) {
    const text: string | undefined = isOpen ? line.trim() : SET_IN.exec(line)?.[1];
    if (text === undefined) continue;
    if (isOpen) commands.push(`${commands.pop() ?? ""}\n${text}`);
    else commands.push(text);
    isOpen = text.endsWith("\\");
  }
  const typed = commands.filter((command) => !/^kubectl (?:.* )?edit /.test(command));
  if (typed.length === 0) throw new Error(`section "${heading}" has no commands`);
  return typed;
}
