import { runConfig, type ProxyStatus, apiTls, configFor, quietLogFor, timeoutMs, type CommonOptions } from "@turnout/client/daemon";
import { parseQuestion, ProxyError, serviceNamed, withSurvey, type Answer, type Cause, type ParsedQuestion } from "@turnout/core";
import { externalTables, hostSurveyFiles, locatePacket, probeEndpoints, surveyPacket, turnoutProcesses, withProbe } from "@turnout/explain";
import { createLinuxWorld, readHostAddresses } from "@turnout/host";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "@turnout/server/node-state";
import { chooseBackend, rulePlaces } from "../registry.ts";
import { askProxy, askProxySocket, type RunningProxyOptions } from "../running-proxy.ts";
import { standaloneCommand, type AskedWords } from "../why/standalone-command.ts";
import { demandSource, withProxyFlags } from "../why/proxy-flags.ts";
import { notRunning } from "../why/not-running.ts";
import { answerStandalone } from "../why/standalone.ts";

/** What `turnout why` was told besides the packet. */
export interface WhyOptions extends CommonOptions, RunningProxyOptions {
  readonly protocol: string;
  readonly in?: string;
  readonly source: string;
  readonly backend: string;
  readonly output: "text" | "json";
  readonly probe?: true;
}

/** Say what becomes of a packet: as the proxy that runs here says, or alone where a source or a backend is named. */
export async function answerWhy(
  command: Command,
  [from, to]: readonly [string, string],
  options: WhyOptions,
  env: Environment,
): Promise<Answer> {
  const { protocol, in: device } = options;
  const isStandalone = ["source", "backend", "config", "nodeName"].some((name) => command.getOptionValueSource(name) === "cli");
  const named = serviceNamed(to);
  // The proxy that runs knows the addresses, and refuses with them.
  if (named !== undefined && !isStandalone)
    await askProxySocket(options, `/turnout/why?service=${named.namespace}/${named.name}`, env.signal, { waitMs: PROXY_WAIT_MS }).catch(
      (error: unknown) => {
        if (ProxyError.is(error, "invalid_object")) throw error;
      },
    );
  const asked = { from, to, protocol, ...(device === undefined ? {} : { in: device }) };
  const question = parseQuestion(asked);
  const answer = isStandalone
    ? await answerHere(command, options, question, env)
    : await answerOfProxy(options, question, env).catch(async (error: unknown) => {
        throw await withWayOut(error, asked, command);
      });
  return options.probe === true ? withProbe(answer, await probeEndpoints(answer)) : answer;
}

/** What `/turnout/why` answers: an answer, and what a survey has to know. */
interface ProxyAnswer extends Answer {
  readonly masqueradeBit: number;
  /** Absent of a proxy that is older. */
  readonly podCIDRs?: readonly string[];
}

async function answerOfProxy(options: WhyOptions, question: ParsedQuestion, env: Environment): Promise<Answer> {
  const linux = createLinuxWorld(env.createWorld(quietLogFor(options, env)));
  const done = new AbortController();
  const { signal } = env;
  try {
    const external = externalTables(linux, question.family, AbortSignal.any([signal, done.signal]));
    // Where no proxy answers nobody waits for it.
    external.catch(ignore);
    const hostAddresses = (await readHostAddresses((family) => linux.netlink.addresses(family)))[question.family];
    const packet = await locatePacket(question, options.in, hostAddresses, linux.exec, signal);
    const query = new URLSearchParams({
      from: packet.source,
      to: packet.destination,
      port: String(packet.port),
      protocol: packet.protocol,
      device: packet.device,
      ...(packet.isDeviceAssumed === true ? { assumed: "yes" } : {}),
      survey: "no",
    });
    const answer = (await askProxySocket(options, `/turnout/why?${query.toString()}`, signal, { hint: GONE })) as ProxyAnswer;
    // No packet has both, so none has a way.
    if (answer.causes[0]?.id === "families_differ") return answer;
    const { masqueradeBit, podCIDRs } = answer;
    const node = { hostAddresses, masqueradeBit, podCIDRs, ...rulePlaces(answer.backend) };
    return withSurvey(answer, await surveyPacket({ ...linux, external }, packet, answer.fate, node, signal));
  } finally {
    done.abort();
    linux.close();
  }
}

/** Say of a proxy that is not there, or does not answer, how to ask without it. */
async function withWayOut(error: unknown, asked: AskedWords, command: Command): Promise<unknown> {
  if (!ProxyError.is(error) || (error.code !== "not_found" && error.code !== "timed_out")) return error;
  // A launcher and its child have the same.
  const started = new Map((await turnoutProcesses(hostSurveyFiles)).map(({ args }) => [args.join("\0"), args]));
  const [args] = started.size === 1 ? started.values() : [];
  const standalone = standaloneCommand(
    asked,
    args,
    command.options.map((option) => option.name()),
  );
  const fill = args === undefined ? ", with the flags that it has (SOURCE: kube, or file:PATH)" : "";
  const { code, what, object, hint } = error;
  const reason = hint === undefined ? "" : `${hint}. `;
  return new ProxyError(code, what, {
    ...(object === undefined ? {} : { object }),
    hint: `${reason}To ask without it${fill}: ${standalone}`,
    cause: error,
  });
}

const GONE =
  "it may not run: then no change of a Service or endpoint comes into force. Or it is another user's, in another network namespace or container, or serves metrics elsewhere (--address)";

async function answerHere(command: Command, options: WhyOptions, question: ParsedQuestion, env: Environment): Promise<Answer> {
  const loaded = await configFor(command, options, env);
  const log = quietLogFor(options, env);
  const world = env.createWorld(log);
  const chosen = await chooseBackend({ world, env, spec: options.backend, mode: loaded.mode, host: "needed", takesOver: true });
  const { module, because } = chosen;
  const found = { options: chosen.options, isUnnamed: because !== undefined };
  const running = await runningProxy(options, env);
  const isSourceSaid = command.getOptionValueSource("source") !== "default";
  if (!isSourceSaid) demandSource(options.source, running.status?.source);
  const { config, causes } =
    running.status === undefined
      ? { config: runConfig(loaded, module, found), causes: [] }
      : withProxyFlags({ loaded, found, module }, running.status);
  return await answerStandalone({
    question,
    device: options.in,
    module,
    config,
    source: options.source,
    state: (onIssue) =>
      new NodeStateSource({ source: options.source, tls: apiTls(options), config, env, clock: world.clock, log: SILENT, onIssue }),
    env,
    world,
    timeoutMs: timeoutMs(options),
    causes: [...causes, ...running.causes],
    ...(running.late === undefined ? {} : { unknownFlags: running.late }),
    // An older proxy does not tell all of its settings.
    ...(running.status?.ruleSettings !== undefined && causes.length === 0 ? { isOfProxy: true as const } : {}),
  });
}

/** What is wrong with objects is in the answer where it matters. */
const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Of a proxy that isn't needed for the answer. On a busy host a sound one needs more than a second at times. */
const PROXY_WAIT_MS = 3_000;

/** What the proxy on this host says of itself, or what is wrong with it: a guess at most, since it may answer elsewhere. */
interface Running {
  readonly status?: ProxyStatus;
  readonly causes: readonly Cause[];
  /** It is there, and did not answer in time. */
  readonly late?: string;
}

async function runningProxy(options: WhyOptions, { signal }: Environment): Promise<Running> {
  try {
    const status = (await askProxy(options, "/turnout/status", signal, { waitMs: PROXY_WAIT_MS })) as
      ProxyStatus | { readonly kind: string };
    return status.kind === "proxy" ? { status: status as ProxyStatus, causes: [] } : { causes: [] };
  } catch (error) {
    if (!ProxyError.is(error, "not_found") && !ProxyError.is(error, "timed_out")) throw error;
    if (error.code === "not_found") return { causes: [notRunning(error, options.source)] };
    const late = `the running proxy did not answer within ${PROXY_WAIT_MS / 1_000} s`;
    // The look at this host names one that is stopped.
    const isStopped = (await turnoutProcesses(hostSurveyFiles)).some((one) => one.isStopped);
    return { causes: isStopped ? [] : [notRunning(error, options.source)], late };
  }
}
