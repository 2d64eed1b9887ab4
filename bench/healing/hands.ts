import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

/** Something that another program does to our rules, as a command of a shell on the node: an entry of `attacks.yaml`. */
export interface Attack {
  readonly name: string;
  /** `{{tool}}` is the victim's, `{{writer}}` changes eBPF's maps and links as no program of a shell can. */
  readonly command: string;
  /** It takes what others have, too. */
  readonly isAtOthersToo?: true;
  /** Nothing reports it, so it is found when everything is compared. */
  readonly isSilent?: true;
}

/** A proxy that is attacked. */
export interface Victim {
  /** Of `turnout run`. */
  readonly flags: readonly string[];
  readonly attacks: readonly Attack[];
  /** It takes a kernel that only a VM has. */
  readonly isInVm?: true;
}

const WRITER = `${process.execPath} --conditions=@turnout/source ${fileURLToPath(new URL("ebpf-hand.ts", import.meta.url))}`;
const FILE = parse(readFileSync(new URL("attacks.yaml", import.meta.url), "utf8")) as Readonly<
  Record<string, Victim & { readonly tool?: string }>
>;

/** By the names that the table has. */
export const VICTIMS: Readonly<Record<string, Victim>> = Object.fromEntries(
  Object.entries(FILE).map(([name, { tool = "", attacks, ...rest }]) => {
    const filled = (command: string): string => command.replaceAll("{{tool}}", tool).replaceAll("{{writer}}", WRITER);
    return [name, { ...rest, attacks: attacks.map((one) => ({ ...one, command: filled(one.command) })) }];
  }),
);
