import { hostPort } from "@turnout/core";
import type { AskedPacket, Cause } from "@turnout/core";
import { orDelete, ruleText, showCommand } from "./drop-causes.ts";
import { isProxyChain } from "../tables/external-tables.ts";
import { evaluateChain, isOfBridges } from "@turnout/host/rules";
import type { RunResult, ExternalChain, ExternalTable, HookedPacket } from "@turnout/host/rules";
import type { Link } from "../readings/links.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/** Say that packets get lost for their size. A narrower device behind a wider one is no fault, as long as the sender gets to hear of it. Pure. */
export function mtuCauses(
  tables: readonly ExternalTable[],
  { packet, hostAddresses }: { readonly packet: AskedPacket; readonly hostAddresses: readonly string[] },
  { there, endpoint }: Way,
  { links }: WayFacts,
  sets: Pick<HookedPacket, "isLocal" | "isInSet">,
): readonly Cause[] {
  if (there.is !== "way" || packet.device === "") return [];
  const [wide, narrow] = [links.get(packet.device), links.get(there.device)];
  if (wide === undefined || narrow === undefined || narrow.mtu >= wide.mtu) return [];
  const message: HookedPacket = {
    family: packet.family,
    protocol: packet.family === "IPv4" ? "icmp" : "icmpv6",
    source: hostAddresses[0] ?? "",
    destination: packet.source,
    sourcePort: undefined,
    destinationPort: undefined,
    inDevice: "",
    outDevice: packet.device,
    state: "related",
    isTranslated: true,
    isAnsweredThere: undefined,
    mark: 0,
    ...sets,
  };
  for (const table of tables.filter((one) => !isOfBridges(one))) {
    for (const chain of table.chains.values()) {
      const { hook } = chain;
      // Of a connection that is known, no nat chain is asked.
      if ((hook?.at !== "output" && hook?.at !== "postrouting") || hook.type === "nat") continue;
      const ran = evaluateChain(table, chain, message, (name) => (isProxyChain(name) ? "skip" : undefined));
      if (ran.is === "pass") continue;
      return [silentCause(packet, { wide, narrow }, hostPort(endpoint.ip, endpoint.port), table, chain, ran)];
    }
  }
  return [];
}

function silentCause(
  { family }: AskedPacket,
  { wide, narrow }: { readonly wide: Link; readonly narrow: Link },
  to: string,
  table: ExternalTable,
  base: ExternalChain,
  { chain = base.name, rule }: RunResult,
): Cause {
  const needed = family === "IPv4" ? "fragmentation needed" : "packet too big";
  const type = family === "IPv4" ? "icmp type destination-unreachable" : "icmpv6 type packet-too-big";
  const [option, name] =
    family === "IPv4" ? ["-p icmp --icmp-type", "fragmentation-needed"] : ["-p icmpv6 --icmpv6-type", "packet-too-big"];
  const accept =
    table.tool === "nft"
      ? `nft insert rule ${table.place} ${base.name} ${type} accept`
      : `${table.tool} -t ${table.place} -I ${base.name} ${option} ${name} -j ACCEPT`;
  return {
    id: "mtu",
    says: `packets of more than ${narrow.mtu} bytes don't fit ${narrow.name} on the way to ${to} (${wide.name} takes ${wide.mtu}), and ${table.name}, chain ${chain}, drops the ICMP messages that would tell the client${ruleText(rule?.text)}: connections open, then hang`,
    show: [showCommand(table, chain), `ip link show ${narrow.name}`, `ip link show ${wide.name}`],
    fix: `give both networks the same MTU, or let ICMP through (${needed})${rule === undefined ? "" : " before that rule"}`,
    commands: [accept],
    ...orDelete(rule),
  };
}
