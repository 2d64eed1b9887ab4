import { runConfig } from "@turnout/client/daemon";
import { answerText, ProxyError, withSurvey, type Answer, type Cause } from "@turnout/core";
import { createLinuxWorld, readHostAddresses } from "@turnout/host";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "../node-state.ts";
import {
  addBackendOptions,
  addConfigFlags,
  addLogOptions,
  addSourceOptions,
  addTimeout,
  apiTls,
  configFor,
  quietLogFor,
  timeoutMs,
  type CommonOptions,
} from "../options.ts";
import { chooseBackend, EXAMPLE_BACKEND, hasKubeChains } from "../registry.ts";
import { addAddress, askProxy, type RunningProxyOptions } from "../running-proxy.ts";
import { surveyHost } from "../why/host-survey.ts";
import { probeEndpoints } from "../why/probe.ts";
import { locatePacket, parseQuestion, type ParsedQuestion } from "../why/question.ts";
import { answerAlone } from "../why/standalone.ts";

interface WhyOptions extends CommonOptions, RunningProxyOptions {
  readonly protocol: string;
  readonly in?: string;
  readonly source: string;
  readonly backend: string;
  readonly output: "text" | "json";
  readonly probe?: true;
}

const EXAMPLES = `
Examples:
  turnout why 10.1.1.5 10.96.0.20:80             # a pod's packet to a cluster IP, as this node sees it
  turnout why 203.0.113.7 172.18.0.1:30080       # a client outside, to a node port
  turnout why host 10.96.0.10:53/udp             # what this node itself sends
  turnout why 10.1.1.5 [fd00:96::14]:80 --probe  # and asks each endpoint whether it answers
  turnout why 10.1.1.5 10.96.0.20:80 --source file:services.yaml --backend ${EXAMPLE_BACKEND}

Ask on the node that the packet comes to first: a pod's own node, or the node that a client addresses.
It asks the proxy that runs on this host, over its metrics port; with --source or --backend it reads everything itself. It changes nothing.
Exit codes: 0 nothing wrong was found, 1 something was, or the question could not be answered, 2 bad usage.`;

/** Add `turnout why`. */
export function addWhy(program: Command, env: Environment, onCulprit: () => void): void {
  const command = program
    .command("why")
    .description("say what becomes of a packet on this node, step by step, what keeps it from arriving, and what mends that")
    .argument("<from>", "the client: its IP address, or host for this node itself")
    .argument("<to:port>", "where it sends to: 10.96.0.20:80, [fd00::1]:80 or 10.96.0.10:53/udp");
  command
    .option("--protocol <protocol>", "tcp, udp or sctp", "tcp")
    .option("--in <device>", "the device that the packet comes in by (default: the one that answers to the client would leave by)")
    .option("--probe", "connect to the endpoints from this host, and see which answer (TCP)")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"));
  addAddress(command);
  addSourceOptions(command);
  addBackendOptions(command, "auto");
  addTimeout(command, "with --source or --backend: give up after this long without a complete state");
  addLogOptions(command);
  addConfigFlags(command, "state");
  command.addHelpText("after", EXAMPLES);
  command.action(async (from: string, to: string, options: WhyOptions) => {
    const { protocol, in: device } = options;
    const question = parseQuestion({ from, to, protocol, ...(device === undefined ? {} : { in: device }) });
    const isAlone = ["source", "backend", "config", "nodeName"].some((name) => command.getOptionValueSource(name) === "cli");
    let answer = isAlone ? await answerHere(command, options, question, env) : await answerOfProxy(options, question, env);
    if (options.probe === true) answer = withSurvey(answer, await probeEndpoints(answer));
    env.out(options.output === "json" ? `${JSON.stringify(answer, undefined, 2)}\n` : answerText(answer));
    if (answer.causes.length > 0) onCulprit();
  });
}

/** What `/turnout/why` answers: an answer, and what a survey has to know. */
interface ProxyAnswer extends Answer {
  readonly masqueradeBit: number;
}

async function answerOfProxy(options: WhyOptions, question: ParsedQuestion, env: Environment): Promise<Answer> {
  const linux = createLinuxWorld(env.createWorld(quietLogFor(options, env)));
  try {
    const { signal } = env;
    const hostAddresses = (await readHostAddresses((family) => linux.netlink.addresses(family)))[question.family];
    const packet = await locatePacket(question, options.in, hostAddresses, linux.exec, signal);
    const query = new URLSearchParams({
      from: packet.source,
      to: packet.destination,
      port: String(packet.port),
      protocol: packet.protocol,
      device: packet.device,
      survey: "no",
    });
    const answer = (await askProxy(options, `/turnout/why?${query.toString()}`, signal)) as ProxyAnswer;
    const { masqueradeBit } = answer;
    return withSurvey(
      answer,
      await surveyHost(linux, packet, answer.fate, { hostAddresses, masqueradeBit, hasKubeChains: hasKubeChains(answer.backend) }, signal),
    );
  } finally {
    linux.close();
  }
}

async function answerHere(command: Command, options: WhyOptions, question: ParsedQuestion, env: Environment): Promise<Answer> {
  const loaded = await configFor(command, options, env);
  const log = quietLogFor(options, env);
  const world = env.createWorld(log);
  const { platform, workingDirectory, signal } = env;
  const place = { world, platform, workingDirectory, signal };
  const { module, options: found } = await chooseBackend({
    ...place,
    spec: options.backend,
    mode: loaded.mode,
    needsHost: true,
    takesOver: true,
  });
  const input = { ...loaded.input, backendOptions: { ...found, ...loaded.input.backendOptions } };
  const config = runConfig({ ...loaded, input }, module);
  return await answerAlone({
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
    causes: await runningCauses(options, env),
  });
}

/** What is wrong with objects is in the answer where it matters. */
const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A guess at most: the proxy may answer elsewhere. */
async function runningCauses(options: WhyOptions, { signal }: Environment): Promise<readonly Cause[]> {
  try {
    await askProxy(options, "/turnout/status", signal);
    return [];
  } catch (error) {
    if (!ProxyError.is(error, "not_found")) throw error;
    const says = `no proxy answers on this host (${options.address ?? "127.0.0.1:10249"})`;
    return [
      {
        id: "not_running",
        isSure: false,
        says,
        mend: "start it, or see why it ended: kubectl -n kube-system get pods -o wide; journalctl -u turnout",
      },
    ];
  }
}
