import { connect } from "node:net";
import { hostPort, withSurvey, type Answer, type Cause, type FateEndpoint, type Step, type Survey } from "@turnout/core";
import { REJECT_COMMANDS } from "../causes/reject-commands.ts";

const ENDPOINTS_MAX = 16;
const WAIT_MS = 700;
const NAMED_MAX = 3;

/** Accepting is the kernel's work: a process that hangs accepts, too. */
type Result = "accepts connections (nothing was sent)" | "refuses" | "is silent";

/**
 * Connect to the endpoints of an answer from this host, and see who accepts; where the packet is no Service's, to its destination. TCP alone: what
 * silence means is known there.
 *
 * Edges: a NetworkPolicy may let the client in and not this host, or the other way round; a rule that rejects looks like a port without a process.
 */
export async function probeEndpoints(answer: Answer): Promise<Survey> {
  const { packet, unjudged } = answer;
  const targets = targetsOf(answer);
  if (packet.protocol !== "TCP") return unprobed("endpoints are probed for TCP alone");
  if (targets.length === 0) return unprobed("the packet goes to no endpoint");
  // Such a connection is translated for that other Service, as the packet that is asked about would not be.
  const services = targets.filter((target) => target.isServiceAddress === true);
  const notes = services.map(
    ({ ip, port }) => `${hostPort(ip, port)} is a Service's address, and was not probed: another Service would answer`,
  );
  const tried = targets.filter((target) => !services.includes(target)).slice(0, ENDPOINTS_MAX);
  if (tried.length === 0) return { steps: [], causes: [], unseen: [], notes };
  const results = await Promise.all(tried.map(probe));
  const by = (result: Result): readonly Target[] => tried.filter((_, index) => results[index] === result);
  const steps: Step[] = [
    { says: `asked from this host: ${tried.map(({ ip, port }, index) => `${hostPort(ip, port)} ${results[index]}`).join(", ")}` },
  ];
  const isService = answer.fate.is === "forward";
  const [refusing, silent] = [by("refuses"), by("is silent")];
  const causes: Cause[] = [];
  if (refusing.length > 0) {
    const rule = unjudged.find((one) => /reject/i.test(one.rule));
    const isLone = isService && refusing.length === tried.length;
    causes.push({
      id: "unanswered",
      says: `${subject(refusing, tried.length, isService, "refuses", "refuse")} connections: nothing listens there on that port, or a rule rejects them`,
      show: [...(rule === undefined ? [] : [rule.show]), ...refusing.slice(0, 1).map(askCommand), ...REJECT_COMMANDS],
      fix: `${rule === undefined ? "" : `first see the rule that can't be judged (${rule.rule}); then `}${isLone ? PORT_FIX : isService ? PROCESS_FIX : HERE_FIX}`,
    });
  }
  if (silent.length > 0)
    causes.push({
      id: "unanswered",
      says: `${subject(silent, tried.length, isService, "does not answer", "don't answer")} this host`,
      // An entry that somebody set by hand (PERMANENT) may have the wrong link-layer address.
      show: silent.slice(0, 1).flatMap((target) => [askCommand(target), `ip neigh show ${target.ip}`]),
      fix: "see whether the pod, its node and the network between them work (ping, the CNI's own tools), and whether a NetworkPolicy keeps this host out; a neighbour entry that is PERMANENT was set by somebody, and may be wrong",
    });
  return { steps, causes, unseen: [], notes, isProbed: true };
}

/** That there is nothing to connect to is no lack of the answer. */
function unprobed(why: string): Survey {
  return { steps: [], causes: [], unseen: [], notes: [`nothing was probed: ${why}`] };
}

const PORT_FIX =
  "see on which port the pods listen, and set targetPort to it; a pod that listens on 127.0.0.1 alone is not reached either. A rule that rejects is on this host (the commands show it), on the pod's node or in the pod";
const PROCESS_FIX =
  "others answer, so it is hardly targetPort: see whether the process in that pod runs and listens (kubectl describe pod, kubectl logs), and whether a rule rejects packets to it alone";
const HERE_FIX = "see whether a process listens there (ss -tln, in the pod), and whether a rule rejects";

/**
 * Add to an answer what probing found. A guess that an endpoint is silent is told anew where this host is answered: then what is between is for this
 * client alone. Pure.
 */
export function withProbe(answer: Answer, probed: Survey): Answer {
  const { packet, causes } = answer;
  const guess = causes.find(({ id, isSure }) => id === "unanswered" && isSure === false);
  if (guess === undefined || probed.isProbed !== true || probed.causes.length > 0 || packet.device === "")
    return withSurvey(answer, probed);
  const words = new Set(guess.says.split(/[\s,;]+/));
  const silent = answer.fate.is === "forward" ? answer.fate.endpoints.find(({ ip, port }) => words.has(hostPort(ip, port))) : undefined;
  const place = silent === undefined || silent.isLocal ? "the endpoint's side" : (silent.nodeName ?? "the endpoint's node");
  const anew: Cause = {
    ...guess,
    says: `${guess.says}. This host is answered, ${packet.source} is not: ${place} lacks the way back to ${packet.source}, or a policy tells it by its source`,
    fix: `see there whether a route leads back to ${packet.source}, and which NetworkPolicies and rules are about it`,
  };
  return withSurvey({ ...answer, causes: causes.map((cause) => (cause === guess ? anew : cause)) }, probed);
}

/** An address to connect to. */
type Target = Pick<FateEndpoint, "ip" | "port" | "isServiceAddress">;

function targetsOf({ packet: { destination, port }, fate }: Answer): readonly Target[] {
  if (fate.is === "forward") return fate.endpoints;
  return fate.is === "pass" ? [{ ip: destination, port }] : [];
}

/** `10.1.0.5:8080 refuses`, or `2 of 3 endpoints (10.1.0.5:8080, 10.1.0.6:8080) refuse`. */
function subject(bad: readonly Target[], count: number, isService: boolean, one: string, several: string): string {
  const names = bad.slice(0, NAMED_MAX).map(({ ip, port }) => hostPort(ip, port));
  if (count === 1) return `${isService ? "the only endpoint, " : ""}${names.join()}${isService ? "," : ""} ${one}`;
  const more = bad.length > names.length ? ", …" : "";
  return `${bad.length} of ${count} endpoints (${names.join(", ")}${more}) ${bad.length === 1 ? one : several}`;
}

function askCommand({ ip, port }: Target): string {
  return `curl -m 1 http://${hostPort(ip, port)}/`;
}

function probe({ ip, port }: Target): Promise<Result> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port });
    const end = (result: Result): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end("is silent"), WAIT_MS);
    socket.once("connect", () => end("accepts connections (nothing was sent)"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refuses" : "is silent"));
  });
}
