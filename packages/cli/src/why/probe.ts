import { connect } from "node:net";
import { hostPort, type Answer, type Cause, type FateEndpoint, type Step, type Survey } from "@turnout/core";

const ENDPOINTS_MAX = 16;
const WAIT_MS = 700;

type Result = "answers" | "refuses" | "is silent";

/**
 * Connect to the endpoints of an answer from this host, and see who answers. TCP alone: what silence means is known there.
 *
 * Edges: a NetworkPolicy may let the client in and not this host, or the other way round.
 */
export async function probeEndpoints({ packet, fate }: Answer): Promise<Survey> {
  if (packet.protocol !== "TCP" || fate.is !== "forward") return { steps: [], causes: [], unseen: ["endpoints are probed for TCP alone"] };
  const tried = fate.endpoints.slice(0, ENDPOINTS_MAX);
  const results = await Promise.all(tried.map(probe));
  const by = (result: Result): readonly FateEndpoint[] => tried.filter((_, index) => results[index] === result);
  const steps: Step[] = [
    { says: `asked from this host: ${tried.map(({ ip, port }, index) => `${hostPort(ip, port)} ${results[index]}`).join(", ")}` },
  ];
  const of = (bad: readonly FateEndpoint[]): string =>
    `${bad.length} of ${tried.length} endpoints: ${bad
      .slice(0, 3)
      .map(({ ip, port }) => hostPort(ip, port))
      .join(", ")}`;
  const [refusing, silent] = [by("refuses"), by("is silent")];
  const causes: Cause[] = [];
  if (refusing.length > 0)
    causes.push({
      id: "unanswered",
      says: `${of(refusing)} refuse connections: nothing listens there on that port`,
      show: `nc -vz ${refusing[0]?.ip} ${refusing[0]?.port}`,
      mend: "see on which port the pods listen, and set targetPort to it; a pod that listens on 127.0.0.1 alone is not reached either",
    });
  if (silent.length > 0)
    causes.push({
      id: "unanswered",
      says: `${of(silent)} don't answer this host`,
      show: `nc -vz -w 1 ${silent[0]?.ip} ${silent[0]?.port}`,
      mend: "see whether the pod, its node and the network between them work (ping, the CNI's own tools), and whether a NetworkPolicy keeps this host out",
    });
  return { steps, causes, unseen: [] };
}

function probe({ ip, port }: FateEndpoint): Promise<Result> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port });
    const end = (result: Result): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end("is silent"), WAIT_MS);
    socket.once("connect", () => end("answers"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refuses" : "is silent"));
  });
}
