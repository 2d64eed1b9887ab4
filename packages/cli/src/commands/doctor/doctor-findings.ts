import type { ProxyStatus } from "@turnout/client/daemon";
import type { Finding, HostSurvey } from "@turnout/explain";
import type { FoundRules } from "../../found-backend.ts";
import type { BackendHealth } from "../../probe-backend.ts";

/** A backend that can't run is a fault where it was asked for, or where none can. Pure. */
export function backendFindings(backends: readonly BackendHealth[], asked: string | undefined): readonly Finding[] {
  const failed = backends.filter(({ problems }) => problems.length > 0);
  if (asked === undefined && failed.length < backends.length) return [];
  return failed.map(({ backend, problems }) => ({
    id: "backend-cannot-run",
    severity: "fault",
    what: `this host can't run the backend ${backend}`,
    because: problems.join("; "),
    fix: asked === undefined ? "as the messages say" : "as the message says; turnout doctor without --backend says which ones it can run",
  }));
}

/** What backends found wrong although they can run, each once: several may use one tool. Pure. */
export function backendWarnings(backends: readonly BackendHealth[]): readonly Finding[] {
  const concerned = new Map<string, string[]>();
  for (const { backend, warnings } of backends)
    for (const warning of warnings) concerned.set(warning, [...(concerned.get(warning) ?? []), backend]);
  return [...concerned].map(([warning, names]) => ({
    id: "backend-warning",
    severity: "risk",
    what: warning.replace(/^\[\w+\] /, ""),
    because: `it concerns the backends that use it: ${names.join(", ")}`,
    fix: "as the message says",
  }));
}

/** Rules of several of our backends at once: both translate, and the first one that a packet meets has it. Pure. */
export function severalActive(
  proxies: readonly FoundRules[],
  running: Pick<ProxyStatus, "backend" | "residence"> | undefined,
): readonly Finding[] {
  const rules = proxies.filter(({ by, isLive }) => by === "turnout" && isLive !== false);
  const isByProcess = running?.residence === "process";
  const own = [...rules, ...(isByProcess ? [{ what: "the process that runs", backend: running.backend }] : [])];
  if (new Set(own.map(({ backend }) => backend)).size < 2) return [];
  return [
    {
      id: "several-backends",
      severity: "fault",
      what: "rules of several of Turnout's backends are in force: packets go by whichever they meet first",
      because: own.map(({ backend, what }) => `${what} (${backend})`).join(", "),
      fix: `turnout cleanup --backend X removes those of the backend that no process serves${isByProcess ? "" : "; a running Turnout does so at its start"}`,
    },
  ];
}

/** A host without a proxy: said only where one, or its rules, would have been seen. Pure. */
export function noneHere(
  proxies: readonly FoundRules[],
  { writers, seesProcesses, unseen }: Pick<HostSurvey, "writers" | "seesProcesses" | "unseen">,
): readonly Finding[] {
  const isSeen = seesProcesses && unseen.every(({ what }) => !what.startsWith("rules "));
  const own = writers.find(({ name, isRunning }) => name === "Turnout" && !isRunning);
  if (isSeen && proxies.length === 0 && own !== undefined && !writers.some(({ name }) => name === "kube-proxy"))
    return [
      {
        id: "turnout-gone",
        severity: "fault",
        what: "Turnout was here, and neither it nor rules of it by which packets would go are left: no Service is served on this host",
        because: `all that is left of it is ${own.traces.join(", ")}; no process of it`,
        fix: "turnout run starts it, and makes its rules anew; or turnout cleanup removes what is left, if it isn't to come back",
      },
    ];
  if (!isSeen || proxies.length > 0 || writers.some(({ name }) => name === "Turnout" || name === "kube-proxy")) return [];
  return [
    {
      id: "no-turnout",
      severity: "note",
      what: "no Turnout runs here, and it has no rules: no Service is served on this host",
      because: "no process and no rules of Turnout or kube-proxy",
      fix: "turnout run starts it, if Services are wanted here",
    },
  ];
}

/** Rules of Turnout that packets go by, and no Turnout that keeps them up to date. Pure. */
export function noneServes(
  proxies: readonly FoundRules[],
  { writers, seesProcesses }: Pick<HostSurvey, "writers" | "seesProcesses">,
): readonly Finding[] {
  const own = proxies.filter(({ by, isLive }) => by === "turnout" && isLive !== false);
  // Of a running kube-proxy beside them is told otherwise.
  if (own.length === 0 || writers.some(({ name, isRunning }) => isRunning && (name === "Turnout" || name === "kube-proxy"))) return [];
  return [
    {
      id: "turnout-not-running",
      severity: seesProcesses ? "fault" : "risk",
      what: seesProcesses
        ? "Turnout's rules are here, and no Turnout runs: packets go by them, and no change of a Service or endpoint comes into force"
        : "Turnout's rules are here, and no Turnout is among the processes that can be seen: if none runs, no change of a Service or endpoint comes into force",
      because: [...new Set(own.map(({ what }) => what))].join(", "),
      fix: "start it: turnout run goes on from these rules, and its former log says why it ended; or turnout cleanup removes them, if it isn't to come back",
    },
  ];
}
