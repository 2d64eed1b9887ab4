import { fileURLToPath } from "node:url";
import { inNamespaces } from "../testing/namespaces.ts";

/** The program that plays scenarios. */
export const CHILD: string = fileURLToPath(new URL("child.ts", import.meta.url));

/** How long a scenario may take, on a machine that is busy with other things, too. */
const TIMEOUT_MS = 100_000;

/** Groups of scenarios, see child.ts. */
export type Group = "sockets" | "packets flows trials" | "module" | "node";

/** Play a scenario with a compiled object, in fresh namespaces; gives what it printed. `before` starts it, e.g. `setpriv` with its arguments. */
export function onStage(group: Group, scenario: string, objectFile: string, before: readonly string[] = []): Promise<unknown> {
  return inNamespaces({ program: CHILD, args: [group, scenario, objectFile], before, timeoutMs: TIMEOUT_MS });
}
