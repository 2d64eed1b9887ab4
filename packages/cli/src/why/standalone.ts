import { optionsForBackend, withTimeout, type RunConfig } from "@turnout/client/daemon";
import {
  ServiceBound,
  explainPacket,
  fitRow,
  knownObjects,
  listedNames,
  openDataplane,
  probeModule,
  ProxyError,
  SERVICE_ENTRIES_MAX,
  withWorldOf,
  type Answer,
  type AskedPacket,
  type BackendModule,
  type Cause,
  type ExplainedState,
  type Issue,
  type ParsedQuestion,
  type ServicePort,
  type World,
} from "@turnout/core";
import { locatePacket, surveyPacket } from "@turnout/explain";
import { createLinuxWorld } from "@turnout/host";
import { parseSourceSpec } from "@turnout/server";
import type { Environment } from "../environment.ts";
import type { NodeStateSource } from "@turnout/server/node-state";
import { rulePlaces } from "../registry.ts";
import { ownAddresses } from "@turnout/explain/why-help";
import { hiddenFrom } from "./running-help.ts";

/** What it takes to answer without a running proxy. */
export interface StandaloneParts {
  readonly question: ParsedQuestion;
  readonly device: string | undefined;
  readonly module: BackendModule;
  readonly config: RunConfig;
  readonly source: string;
  readonly state: (report: (issue: Issue) => void) => NodeStateSource;
  readonly env: Environment;
  readonly world: World;
  readonly timeoutMs: number;
  /** What is known otherwise. */
  readonly causes: readonly Cause[];
  /** The flags are those of the proxy that runs here. */
  readonly isOfProxy?: true;
  /** Why the flags of the proxy that wrote the rules are not known; absent: they are, or none runs. */
  readonly unknownFlags?: string;
}

/**
 * Answer in this process: read the source, look at the host.
 * @throws {ProxyError} what can't be read, or what the backend's probe fails with.
 */
export async function answerStandalone(parts: StandaloneParts): Promise<Answer> {
  const { env, source, timeoutMs, world } = parts;
  const issues: Issue[] = [];
  const state = parts.state((issue) => void issues.push(issue));
  let answer: Answer | undefined;
  const body = async (stop: AbortSignal): Promise<void> => void (answer = await explain(parts, state, issues, stop));
  await withTimeout(`source ${source}`, timeoutMs, world.clock, env.signal, (stop) => state.during(body, stop));
  if (answer === undefined) throw new Error("an answer was not come to");
  return answer;
}

const NODES_SHOWN = 4;

/**
 * With a name that no Node has, endpoints of this node would be taken for others', and the kernel's rules would seem wrong. A cluster has Nodes; files
 * may have none, and then nothing can be told.
 */
function refuseUnknownNode(
  { state, source, config }: Pick<StandaloneParts, "source" | "config"> & { readonly state: NodeStateSource },
  rows: readonly ServicePort[],
): void {
  const known = [...state.store.nodeNames()];
  if (!state.lacksNode || (known.length === 0 && parseSourceSpec(source).kind !== "kube")) return;
  // Of a cluster only the Node of this name was asked for, but its endpoints name others.
  const named = [...new Set(rows.flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? [])))];
  const has =
    known.length > 0
      ? ` (it has: ${listedNames(known, NODES_SHOWN)})`
      : named.length > 0
        ? ` (endpoints are on: ${listedNames(named, NODES_SHOWN)})`
        : "";
  const hint = has === "" ? "give this node's name there (--node-name)" : "write one of these with --node-name";
  throw new ProxyError("not_found", `the source has no Node ${config.nodeName}${has}`, { hint });
}

async function explain(parts: StandaloneParts, state: NodeStateSource, issues: Issue[], signal: AbortSignal): Promise<Answer> {
  const { question, module, config, world, causes, unknownFlags, isOfProxy } = parts;
  const { family } = question;
  const entriesMax = config.serviceEntriesMax ?? module.serviceEntriesMax ?? SERVICE_ENTRIES_MAX;
  const report = (issue: Issue): void => void issues.push(issue);
  const bound = new ServiceBound({ entriesMax, report });
  const linux = createLinuxWorld(world);
  try {
    const [all, hidden, addresses] = await Promise.all([state.feed(family).next(signal), hiddenFrom(parts, signal), ownAddresses(linux)]);
    const hostAddresses = addresses[family];
    const packet: AskedPacket = await locatePacket(question, parts.device, hostAddresses, world.exec, signal);
    const { node, set } = bound.limit(all);
    if (node === undefined) throw new Error("the first change set of a feed has the node");
    refuseUnknownNode({ state, source: parts.source, config }, set);
    return await withWorldOf(module, world, async (own) => {
      const options = module.parseOptions(optionsForBackend(module, config));
      const { facts: host, capabilities, variants } = await probeModule(module, options, own, signal);
      const rows = set.flatMap((row) => {
        const fitted = fitRow(row, capabilities);
        issues.push(...fitted.issues);
        return fitted.row ?? [];
      });
      const isOfObjects = parseSourceSpec(parts.source).kind !== "api";
      const explained: ExplainedState = {
        node,
        rows,
        hostAddresses,
        nodePortAddressesDefault: module.nodePortAddressesDefault ?? [],
        capabilities,
        variants,
        issues,
        hidden,
        source: { name: parts.source, problems: [], isEmpty: isOfObjects && [...state.store.serviceKeys()].length === 0 },
        ...(isOfObjects ? { objects: knownObjects(state.store) } : {}),
      };
      const dataplane = await openDataplane(module, options, own, signal);
      try {
        const backend = { name: module.name, family: dataplane.family(family), host };
        const { masqueradeBit } = node.settings;
        return await explainPacket(
          {
            packet,
            state: explained,
            backend,
            causes,
            ...(unknownFlags === undefined ? {} : { unknownFlags }),
            ...(isOfProxy === undefined ? {} : { isOfProxy }),
            ...(module.residence === "process" ? { isInOtherProcess: true as const } : {}),
            survey: (fate, stop) =>
              surveyPacket(
                linux,
                packet,
                fate,
                { hostAddresses, masqueradeBit, podCIDRs: node.podCIDRs, ...rulePlaces(module.name) },
                stop,
              ),
          },
          signal,
        );
      } finally {
        await dataplane.close(signal);
      }
    });
  } finally {
    linux.close();
  }
}
