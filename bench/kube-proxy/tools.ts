import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";

/** The variants of the iptables tools. */
export type Variant = "legacy" | "nft";

const TOOLS = ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/** Make a directory in which the plain names of the tools are those of one variant; resolves to its path, to be first on PATH. */
export async function placeTools(directory: string, variant: Variant): Promise<string> {
  const path = join(directory, `tools-${variant}`);
  await mkdir(path);
  for (const tool of TOOLS) await symlink(`/usr/sbin/xtables-${variant}-multi`, join(path, tool));
  return path;
}
