import type { AskedPacket, Cause, Step, Survey } from "@turnout/core";
import { distinctRules, shared } from "./merged-causes.ts";
import type { PathQuestion } from "../ways/path-question.ts";
import { routeCommand } from "../readings/route.ts";

/** A proxy's process accepts the client's connection, and opens one of its own to the endpoint. */
export function isAnsweredHere({ fate, answersItself }: Pick<PathQuestion, "fate" | "answersItself">): boolean {
  return fate.is === "forward" && (answersItself || fate.at === "process");
}

/** The client's packet, which is for this host. Pure. */
export function arrivingQuestion(question: PathQuestion): PathQuestion {
  const { packet, fate, hostAddresses } = question;
  return { ...question, fate: { is: "pass" }, processFate: fate, hostAddresses: [...hostAddresses, packet.destination] };
}

/** What the process sends to endpoints: as a program of this host does whose socket was translated, no packet of it has the Service's address. Pure. */
export function openedQuestion(question: PathQuestion): PathQuestion {
  const { packet, fate } = question;
  if (fate.is !== "forward") return question;
  const { isDeviceAssumed: _, ...asked } = packet;
  const endpoints = fate.endpoints.map((endpoint) => ({ ...endpoint, masquerade: false }));
  return { ...question, answersItself: false, packet: { ...asked, device: "" }, fate: { is: "forward", at: "socket", endpoints } };
}

const ARRIVES: Step = { says: "the proxy's process answers it: the packet is for this host itself", isOfWay: true };
const OPENED: Step = {
  says: "for it the process opens a connection of its own to the endpoint, from this host: nothing of this is forwarded, translated or masqueraded",
  isOfWay: true,
};

/** Put together what was found of both connections. Pure. */
export function answeredHere(arriving: Survey, opened: Survey): Survey {
  return {
    steps: [ARRIVES, ...arriving.steps, OPENED, ...opened.steps],
    notes: [...new Set([...(arriving.notes ?? []), ...(opened.notes ?? [])])],
    causes: shared([arriving.causes, opened.causes]),
    unseen: [...new Set([...arriving.unseen, ...opened.unseen])],
    unjudged: distinctRules([arriving, opened]),
  };
}

/**
 * Say that the Service's address is none of this host's, so that its packets don't come to the process. Pure.
 *
 * Edges: what is wrong on the way that they take instead is not for them.
 */
export function notHere(arriving: Survey, { destination }: AskedPacket): Survey {
  const cause: Cause = {
    id: "kernel_missing",
    says: `${destination} is no address of this host, so its packets don't come to the proxy's process, which is to answer them`,
    show: [routeCommand({ to: destination })],
    fix: "start the proxy if it does not run; where it does, its log says which addresses it left out, and why",
  };
  return { ...arriving, causes: [cause, ...arriving.causes.filter(({ id }) => id === "two_proxies")] };
}
