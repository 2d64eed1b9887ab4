import type { Cause } from "@turnout/core";
import { KUBE_SERVICES } from "../tables/external-tables.ts";
import type { ExternalTables } from "../tables/external-tables.ts";
import type { PathQuestion } from "../ways/path-question.ts";

/** Remove what a backend of Turnout left, or a table of another proxy. */
function cleanupCommand(table: string): string {
  if (table.endsWith(" turnout-ebpf")) return "turnout cleanup --backend ebpf";
  return table.endsWith(" turnout") ? "turnout cleanup --backend nft" : `nft delete table ${table}`;
}

/** Say that another proxy's rules serve the address beside the backend's own. Pure. */
export function proxyCauses(
  { packet, hasKubeChains, answersItself }: Pick<PathQuestion, "packet" | "hasKubeChains" | "answersItself">,
  { tables, proxyTables }: Pick<ExternalTables, "tables" | "proxyTables">,
): readonly Cause[] {
  const fix = answersItself
    ? "packets go by these rules before they come to the process that answers here, and it removes none. See which proxy they are of, and end it where it runs (turnout doctor); then remove what it left"
    : "see that only one proxy runs here, then restart this one: it removes what others left (unless told --keep-other-rules)";
  // Where the backend has no table of its own, each is another's.
  const [table] = hasKubeChains || answersItself ? proxyTables : [];
  if (table !== undefined)
    return [
      {
        id: "two_proxies",
        says: `another service proxy has rules in force on this node: table ${table}`,
        show: [`nft -t list table ${table}`],
        fix,
        ...(answersItself ? { commands: [cleanupCommand(table)] } : {}),
      },
    ];
  const nat = tables.find(({ place, chains }) => place === "nat" && chains.has(KUBE_SERVICES));
  const isServed = nat?.chains.get(KUBE_SERVICES)?.rules.some(({ text }) => text.includes(` ${packet.destination}/`)) ?? false;
  if (hasKubeChains || nat === undefined || !isServed) return [];
  const says = `another service proxy serves this address, too: chain ${KUBE_SERVICES} of the ${nat.name}`;
  return [{ id: "two_proxies", says, show: [`${nat.tool} -t nat -S ${KUBE_SERVICES} | grep ${packet.destination}`], fix }];
}
