import { hostPort } from "@turnout/core";
import type { Cause, Protocol } from "@turnout/core";
import type { PathQuestion } from "../ways/path-question.ts";
import type { Way } from "../ways/way.ts";

/** Write the command that shows who listens on a port. Pure. */
export function listenersCommand(protocol: Protocol, port: number): string {
  return `ss -${protocol === "UDP" ? "u" : "t"}lnp 'sport = :${port}'`;
}

/**
 * Say so where a packet ends on this host, and nothing listens. Pure.
 *
 * Edges: a guess, since programs at devices may take it before any socket does; but a proxy that answers itself listens, or serves nobody.
 */
export function listenerCauses(
  { packet: { protocol }, fate, processFate }: Pick<PathQuestion, "packet" | "fate" | "processFate">,
  { endpoint, isListenedTo }: Way,
): readonly Cause[] {
  if (isListenedTo !== false) return [];
  const { ip, port } = endpoint;
  const target = `${hostPort(ip, port)}/${protocol}`;
  const lost = protocol === "TCP" ? "connections are refused" : "what is sent there is lost";
  const listeners = listenersCommand(protocol, port);
  if (processFate !== undefined)
    return [
      {
        id: "unanswered",
        says: `nothing listens at ${target}, where the proxy's process is to answer: ${lost}`,
        show: [listeners],
        fix: "start the proxy if it does not run; where it does, turnout status and its log say why it has not this port",
      },
    ];
  const common = { id: "unanswered", isSure: false } as const;
  if (fate.is === "forward")
    return [
      {
        ...common,
        says: `the endpoint ${target} is on this host, and nothing listens there: ${lost}`,
        show: [listeners],
        fix: `see whether the pod's process runs, and by which port; set targetPort to it`,
      },
    ];
  return [
    {
      ...common,
      says: `no Service has ${target}, and nothing on this host listens there: ${lost}`,
      show: [listeners, "kubectl get services -A"],
      fix: "ask for a port that a Service has (a node port is the second number of PORT(S)), or start the program that is to listen",
    },
  ];
}
