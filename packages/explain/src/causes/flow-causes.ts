import { hostPort } from "@turnout/core";
import type { Cause } from "@turnout/core";
import type { Flow } from "@turnout/host";
import type { ReadFile } from "../tables/external-tables.ts";
import type { PathQuestion } from "../ways/path-question.ts";

/** What a TCP connection is in, by the kernel's number, with the parameter that says for how long it is kept. @source linux/netfilter/nf_conntrack_tcp.h */
const TCP_STATES: readonly string[] = [
  "",
  "syn_sent",
  "syn_recv",
  "established",
  "fin_wait",
  "close_wait",
  "last_ack",
  "time_wait",
  "close",
];
/** The endpoint answered, and the client was not heard again: the answer may be lost. */
const SYN_RECV = 2;

/** For how long the kernel keeps a TCP connection after its last packet, in seconds, by the number of its state. */
export type FlowTimeouts = ReadonlyMap<number, number>;

/** Read for how long connections are kept. */
export async function readFlowTimeouts(read: ReadFile): Promise<FlowTimeouts> {
  const found = await Promise.all(
    TCP_STATES.map(async (name, state) => {
      const text = name === "" ? undefined : await read(`/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_${name}`);
      return text === undefined ? [] : [[state, Number(text)] as const];
    }),
  );
  return new Map(found.flat());
}

/** How long ago its last packet was; undefined: it can't be told. */
function ageOf({ tcpState, secondsLeft }: Flow, timeouts: FlowTimeouts): number | undefined {
  const kept = tcpState === undefined ? undefined : timeouts.get(tcpState);
  return kept === undefined || secondsLeft === undefined || secondsLeft > kept ? undefined : kept - secondsLeft;
}

/** The latest connection to an endpoint without an answer, where nothing shows that the endpoint has answered since. */
function latestUnanswered(flows: readonly Flow[], timeouts: FlowTimeouts): Flow | undefined {
  const since = (flow: Flow): number => ageOf(flow, timeouts) ?? 0;
  const open = flows.filter(
    (flow) =>
      !flow.isAnswered &&
      !flows.some(
        (other) =>
          other.isAnswered &&
          other.tcpState !== SYN_RECV &&
          other.answerer === flow.answerer &&
          other.answererPort === flow.answererPort &&
          // Of two whose order can't be told the answered one is taken for the later one.
          (ageOf(flow, timeouts) === undefined || since(other) <= since(flow)),
      ),
  );
  return open.toSorted((a, b) => since(a) - since(b))[0];
}

/**
 * Say what the connections that the kernel remembers have to do with it. Pure.
 *
 * Edges: what a client sends within a remembered flow goes where it went before. For UDP that is whatever it sends from the same port; a TCP client
 * opens each connection from another port, so only the connections that are open are concerned.
 */
export function flowCauses(
  { packet, fate, processFate }: Pick<PathQuestion, "packet" | "fate" | "processFate">,
  flows: readonly Flow[],
  timeouts: FlowTimeouts,
): readonly Cause[] {
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
    const wrong =
      processFate !== undefined
        ? "past the proxy's process"
        : `which is ${fate.is === "forward" ? "none of its endpoints now" : "no endpoint any more"}`;
    const went =
      answererOf(first) === hostPort(destination, port)
        ? "untranslated, as before there was an endpoint"
        : `to ${answererOf(first)}, ${wrong}`;
    return [
      {
        id: "stale_flow",
        says: `the kernel remembers a flow from ${source} port ${first.sourcePort}, and sends it ${went}`,
        show: [show],
        fix: "make it forget",
        commands: [`${tool}-D ${filter}`],
      },
    ];
  }
  const unanswered = latestUnanswered(
    flows.filter((flow) => allowed.has(answererOf(flow))),
    timeouts,
  );
  if (fate.is !== "forward" || unanswered === undefined || protocol === "UDP") return [];
  const age = ageOf(unanswered, timeouts);
  const attempt = age === undefined ? "an attempt of this client" : `an attempt of this client ${age} s ago`;
  const says = `${attempt} (port ${unanswered.sourcePort}) to ${answererOf(unanswered)} got no answer: it was lost on this node or behind it, or the answer was. If something was mended since, that is over: try again`;
  return [
    {
      id: "unanswered",
      isSure: false,
      says,
      show: [show, `tcpdump -ni any host ${unanswered.answerer}`],
      fix: "ask that endpoint itself whether it answers (turnout why --probe). Where it does, see with tcpdump whether packets leave this node and answers come back to it: what neither leaves nor comes in, this node drops (docs/why.md says what why can't see); else look at the network in between, and at NetworkPolicies",
    },
  ];
}
