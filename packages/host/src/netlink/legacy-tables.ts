import { readFile } from "node:fs/promises";
import type { IPFamily } from "@turnout/core";
import { ProxyError } from "@turnout/core";

/**
 * Name the tables that legacy iptables has made in this network namespace; looking makes none.
 *
 * Edges: empty where the kernel has no legacy iptables.
 * @throws {ProxyError} `permission_denied` where only root may know.
 */
export async function legacyTables(family: IPFamily): Promise<readonly string[]> {
  const path = `/proc/thread-self/net/${family === "IPv4" ? "ip_tables_names" : "ip6_tables_names"}`;
  try {
    return (await readFile(path, "utf8")).split("\n").filter((name) => name !== "");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return [];
    const isDenied = code === "EACCES" || code === "EPERM";
    throw ProxyError.from(error, isDenied ? "permission_denied" : "tool_failed", "the tables of legacy iptables can't be named", {
      object: path,
    });
  }
}
