import type { AskedPacket, Survey } from "@turnout/core";
import { listenersCommand } from "./listener-causes.ts";

/**
 * Say that a cluster IP which this host has too, and which is untracked or (eBPF) listened to, is left to a program here: so NodeLocal DNSCache takes one over. Pure.
 *
 * Shape: `survey` is that of the packet as no Service's.
 */
export function leftToLocal({ destination, port, protocol }: AskedPacket, survey: Survey, isUntracked: boolean): Survey {
  const why = isUntracked
    ? "is untracked on purpose: it is left to a program here"
    : "a program here listens on this port: it is left to it";
  const says = `${destination} is an address of this node too, and ${why} (NodeLocal DNS)`;
  const silent = {
    says: `${says}, and nothing listens there`,
    show: [listenersCommand(protocol, port)],
    fix: "see why that program ended, and start it again; or take the address and the rules about tracking away: then the Service answers",
  };
  return {
    ...survey,
    steps: [{ says }, ...survey.steps],
    notes: [says, ...(survey.notes ?? [])],
    causes: survey.causes.map((cause) => (cause.id === "unanswered" ? { ...cause, ...silent } : cause)),
  };
}
