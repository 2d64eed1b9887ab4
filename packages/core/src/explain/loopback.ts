import { LOOPBACK_ADDRESS, namesLoopback } from "../model/node-port-addresses.ts";
import { hostPort } from "../model/addresses.ts";
import type { Cause, Fate, Step } from "./answer.ts";
import { emptyPoolCauses } from "./empty-pools.ts";
import type { Hit } from "./hit.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

/** What becomes of a packet for a node port on loopback. */
export interface LoopbackAnswer {
  readonly hit: Hit;
  readonly step: Step;
  readonly fate: Fate;
  readonly causes: readonly Cause[];
}

/**
 * Say what becomes of a packet that this host sends to a node port on loopback, where the settings name it and the backend leaves it to the process of
 * the proxy; undefined: it is not such a packet. Pure.
 * @source rule R-38
 */
export function loopbackAnswer(state: ExplainedState, packet: AskedPacket): LoopbackAnswer | undefined {
  const { variants, node } = state;
  if (variants.nodePortsOnLoopback !== "TCP" || packet.destination !== LOOPBACK_ADDRESS[node.family]) return undefined;
  if (!namesLoopback(node.settings, node.family)) return undefined;
  const hit = nodePortHit(state, packet);
  if (hit === undefined) return undefined;
  const answer = (says: string, fate: Fate, causes: readonly Cause[] = []): LoopbackAnswer => ({
    hit,
    step: { says, rule: "R-38" },
    fate,
    causes,
  });
  if (packet.protocol !== "TCP") return answer(`only TCP is answered on loopback: ${packet.protocol} is refused`, { is: "reject" });
  const { row, destination } = hit;
  const to = destination.rules.at(-1)?.to;
  const pool = to === "cluster" || to === "local" ? row[to].flatMap((index) => row.endpoints[index] ?? []) : [];
  if (pool.length === 0)
    return answer(
      "it has no endpoint that its external policy allows here: the proxy's process does not listen there",
      { is: "reject" },
      emptyPoolCauses(state, packet, row, destination),
    );
  const endpoints = pool.map(({ ip, port, nodeName, isLocal }) => ({ ip, port, nodeName, isLocal, masquerade: false }));
  const texts = pool.map(({ ip, port }) => hostPort(ip, port)).join(", ");
  return answer(`the proxy's process answers on loopback, and connects to an endpoint: ${texts}`, {
    is: "forward",
    at: "process",
    endpoints,
  });
}

function nodePortHit({ rows }: ExplainedState, { port, protocol }: AskedPacket): Hit | undefined {
  for (const row of rows) {
    const destination = row.destinations.find((one) => one.kind === "nodePort" && one.port === port);
    if (destination !== undefined && row.name.protocol === protocol) return { row, destination };
  }
  return undefined;
}
