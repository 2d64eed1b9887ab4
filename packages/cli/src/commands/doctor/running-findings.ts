import { eligibilityOf } from "@turnout/client";
import type { ProxyStatus } from "@turnout/client/daemon";
import type { ProxyError } from "@turnout/core";
import type { Finding, Writer } from "@turnout/explain";

/** What answered where the proxy of this host should. */
export interface RunningAnswer {
  /** Of a proxy. */
  readonly status?: ProxyStatus;
  /** Why there is none. */
  readonly error?: ProxyError;
  /** Who listens at that port, as `ss` names the process. */
  readonly listener?: { readonly name: string; readonly pid: number };
}

/** What the proxy that runs here says of its own trouble, and why it can't be asked. Pure. */
export function runningFindings(answer: RunningAnswer, writers: readonly Writer[]): readonly Finding[] {
  return answer.status === undefined
    ? takenFindings(answer, writers)
    : [...nodeFindings(answer.status), ...sourceFindings(answer.status), ...externalIPFindings(answer.status)];
}

/** Why load balancers are told to send nothing here; without a Node object more is amiss than that. */
function nodeFindings({ node, health: { isHealthy, isEligible, reason } }: ProxyStatus): readonly Finding[] {
  if (!isHealthy || isEligible) return [];
  const isUnknown = reason === eligibilityOf(undefined).reason;
  return [
    {
      id: "not-for-load-balancers",
      severity: isUnknown ? "risk" : "note",
      what: `load balancers are told to send this node nothing: ${reason}${isUnknown ? ". So no endpoint counts as being here, and node ports may answer on every address of this host" : ""}`,
      because: `turnout status: healthy, not for load balancers; its name is ${node}`,
      fix: isUnknown
        ? `give the proxy the name that the node has (--node-name): kubectl get node ${node}; a file needs a Node object, too`
        : "nothing, if that is meant",
    },
  ];
}

/** Services may have addresses in one family only; those of the family with more of them are counted. */
function externalIPFindings({ families }: ProxyStatus): readonly Finding[] {
  const count = Math.max(0, ...families.map(({ servicesWithExternalIPs = 0 }) => servicesWithExternalIPs));
  if (count === 0) return [];
  return [
    {
      id: "external-ips",
      severity: "note",
      what: `${count} ${count === 1 ? "Service loses its" : "Services lose their"} externalIPs with the feature gate AllowServiceExternalIPs=false, and in clusters of 1.40 and later by default`,
      because: "turnout status: servicesWithExternalIPs",
      fix: "use a load-balancer IP, or set AllowServiceExternalIPs=true before the cluster is upgraded (kubernetes/enhancements 5707)",
    },
  ];
}

function sourceFindings({ sourceProblems, families, source = "" }: ProxyStatus): readonly Finding[] {
  const problems = Object.entries(sourceProblems).map(([part, problem]) => `${part}: ${problem}`);
  const isReported = families.some(({ appliedSinceMs }) => appliedSinceMs !== undefined);
  const isEmpty = isReported && families.every(({ services }) => services === 0);
  return [
    ...(problems.length === 0
      ? []
      : [
          {
            id: "source-not-followed",
            severity: "fault",
            what: `Turnout can't follow its source ${source}: packets go by what it said last, and no change of a Service or endpoint comes into force`,
            because: problems.join("; "),
            fix: "have the source answer again; turnout status says when it is followed",
          } as const,
        ]),
    ...(isEmpty
      ? [
          {
            id: "no-services",
            severity: "risk",
            what: `Turnout runs, and no Service at all is known from its source ${source}: no address is served on this host`,
            because: "turnout status: 0 Services",
            fix: "see whether the source is the right one, and has its Services",
          } as const,
        ]
      : []),
  ];
}

/** A proxy runs, and somebody else answers where it should, or nobody who is it. */
function takenFindings({ error, listener }: RunningAnswer, writers: readonly Writer[]): readonly Finding[] {
  const turnout = writers.find(({ name, isRunning }) => name === "Turnout" && isRunning);
  if (error === undefined || turnout === undefined) return [];
  const isOther = listener !== undefined && !turnout.pids.includes(listener.pid);
  if (!isOther && !error.what.startsWith("what answers there is no Turnout")) return [];
  const who = listener === undefined ? "another program" : `${listener.name} (pid ${listener.pid})`;
  return [
    {
      id: "metrics-port-taken",
      severity: "risk",
      what: `${who} has the port where Turnout serves its metrics: turnout status and turnout why can't ask it, and nobody reads its metrics`,
      because: `${error.what} (${error.object ?? ""})`,
      fix: "stop that program, or give Turnout another port (--metrics-bind-address); if it has another one already, pass that to doctor with --address",
    },
  ];
}

/** Read who listens from what `ss -tlnpH` printed; undefined: nobody does, or it may not be seen. Pure. */
export function listenerIn(text: string): RunningAnswer["listener"] {
  const [, name, pid] = /users:\(\("([^"]*)",pid=(\d+)/.exec(text) ?? [];
  return name === undefined ? undefined : { name, pid: Number(pid) };
}
