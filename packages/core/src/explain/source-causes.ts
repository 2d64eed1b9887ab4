import type { Issue } from "../model/api-objects.ts";
import type { Cause } from "./answer.ts";
import { isLoopback, isWithin } from "./hit.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

/** Where API servers take node ports from, where nobody told them otherwise. @source kube-apiserver --service-node-port-range */
const NODE_PORTS = [30_000, 32_767] as const;

/** The source has no Service at all, so whatever the packet is for is no Service's. Pure; `isKnown`: somebody is known to have the address. */
export function emptySourceCauses(state: ExplainedState, packet: AskedPacket, isKnown: boolean): readonly Cause[] {
  const { source, node, hostAddresses } = state;
  if (source?.isEmpty !== true) return [];
  const { destination, port } = packet;
  const isHosts = hostAddresses.includes(destination) || isLoopback(destination);
  const isNodePort = isHosts && port >= NODE_PORTS[0] && port <= NODE_PORTS[1];
  if (isKnown && !isNodePort) return [];
  const { name, problems, wasFilled = false } = source;
  const from = name === undefined ? "" : ` from source ${name}`;
  const lost = wasFilled ? "; it had some before, and their rules were taken away" : "";
  const problem = problems.length === 0 ? "" : `; the source is not followed: ${problems.join("; ")}`;
  const path = pathOf(name);
  const isSure = wasFilled || isWithin(destination, node.serviceCIDRs);
  return [
    {
      id: "no_services",
      says: `no Service at all is known here${from}${lost}: no address is served on this node${problem}`,
      show: ["turnout status", path === undefined ? "kubectl get services -A" : `ls -la ${path}`],
      fix:
        path === undefined
          ? "see whether the source is the right one (--source, --kubeconfig), and has its Services"
          : `put the Services back into ${path}; the proxy follows it`,
      ...(isSure ? {} : { isSure: false as const }),
    },
  ];
}

/** What is known of Services may be old. Pure. */
export function sourceNotes({ source }: Pick<ExplainedState, "source">): readonly string[] {
  const { name = "", problems = [] } = source ?? {};
  if (problems.length === 0) return [];
  return [`the source ${name} is not followed (${problems.join("; ")}): this is what it said last, and changes don't come into force`];
}

/** What is wrong with the source itself may be why a Service isn't known. A guess. Pure. */
export function sourceCauses({ source, issues }: ExplainedState): readonly Cause[] {
  const { name = "", problems = [] } = source ?? {};
  const guess = (says: string, fix: string): readonly Cause[] => [
    { id: "source_problem", isSure: false, says: `the source ${name} ${says}`, show: ["turnout status"], fix },
  ];
  if (problems.length > 0)
    return guess(
      `is not followed (${problems.join("; ")}), so a Service that it has now may not be known here`,
      "have the source answer again; rules stay as they are until then",
    );
  const [first, ...others] = issues.filter(isOfSource);
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  const says = `has what can't be used, so a Service may be missing, or an older one be in force: ${first.object}: ${first.what}${more}`;
  return guess(says, first.hint);
}

/** About a file, or a place in one; others are about an API object by its kind and name. */
function isOfSource({ object }: Issue): boolean {
  return !/^[A-Z]\w* /.test(object);
}

/** The path of a file source; undefined: it is none. */
function pathOf(source: string | undefined): string | undefined {
  return source?.startsWith("file:") === true ? source.slice("file:".length) : undefined;
}

/**
 * Have causes show where objects are read from: where these are files there may be no cluster to ask. Pure.
 *
 * Shape: `word` is what to look for in the files.
 */
export function inSource(causes: readonly Cause[], { source }: Pick<ExplainedState, "source">, word: string): readonly Cause[] {
  const path = pathOf(source?.name);
  if (path === undefined) return causes;
  const isOfCluster = (command: string): boolean => command.startsWith("kubectl ");
  return causes.map((cause) => {
    const { show, commands, ...rest } = cause;
    const kept = commands?.filter((command) => !isOfCluster(command)) ?? [];
    const sought = (command: string): string => (/ nodes? /.test(command) ? "kind: Node" : word);
    const looks = show?.map((command) => (isOfCluster(command) ? `grep -rnwF -e '${sought(command)}' ${path}` : command));
    return { ...rest, ...(looks === undefined ? {} : { show: [...new Set(looks)] }), ...(kept.length === 0 ? {} : { commands: kept }) };
  });
}
