import { hostPort } from "@turnout/core";
import type { AskedPacket, Cause, Fate } from "@turnout/core";
import type { Flow } from "../netlink/flow-list.ts";

/**
 * Say what the connections that the kernel remembers have to do with it. Pure.
 *
 * Edges: what a client sends within a remembered flow goes where it went before. For UDP that is whatever it sends from the same port; a TCP client
 * opens each connection from another port, so only the connections that are open are concerned.
 */
export function flowCauses(packet: AskedPacket, fate: Fate, flows: readonly Flow[]): readonly Cause[] {
  const { protocol, source, destination, port } = packet;
  const allowed = new Set(
    fate.is === "forward" ? fate.endpoints.map((endpoint) => hostPort(endpoint.ip, endpoint.port)) : [hostPort(destination, port)],
  );
  const answererOf = (flow: Flow): string => hostPort(flow.answerer, flow.answererPort);
  const stale = flows.filter((flow) => !allowed.has(answererOf(flow)));
  const tool = `conntrack -f ${packet.family.toLowerCase()} `;
  const filter = `-p ${protocol.toLowerCase()} -s ${source} -d ${destination} --dport ${port}`;
  const show = `${tool}-L ${filter}`;
  const [first] = stale;
  if (first !== undefined && protocol !== "TCP") {
    const went =
      answererOf(first) === hostPort(destination, port)
        ? "untranslated, as before there was an endpoint"
        : `to ${answererOf(first)}, which is ${fate.is === "forward" ? "none of its endpoints now" : "no endpoint any more"}`;
    return [
      {
        id: "stale_flow",
        says: `the kernel remembers a flow from ${source} port ${first.sourcePort}, and sends it ${went}`,
        show,
        mend: `make it forget: ${tool}-D ${filter}`,
      },
    ];
  }
  const [unanswered] = flows.filter((flow) => allowed.has(answererOf(flow)) && !flow.isAnswered);
  if (fate.is !== "forward" || unanswered === undefined || protocol === "UDP") return [];
  const says = `a connection of this client was sent to ${answererOf(unanswered)} a moment ago, and no answer has come yet`;
  return [
    {
      id: "unanswered",
      isSure: false,
      says,
      show,
      mend: `ask that endpoint itself: does it listen? turnout why --probe; then the network in between, and NetworkPolicies`,
    },
  ];
}
