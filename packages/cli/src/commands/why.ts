import { addConfigFlags, addLogOptions, addRuleOptions, addTimeout } from "@turnout/client/daemon";
import { answerText } from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { outputJson } from "../output-json.ts";
import { addBackendOptions, addSourceOptions } from "../options.ts";
import { EXAMPLE_BACKEND } from "../registry.ts";
import { addAddress } from "../running-proxy.ts";
import type { WhyOptions } from "./why-run.ts";

const EXAMPLES = `
Examples:
  turnout why 10.1.1.5 10.96.0.20:80             # a pod's packet to a cluster IP, as this node sees it
  turnout why 203.0.113.7 172.18.0.1:30080       # a client outside, to a node port
  turnout why host 10.96.0.10:53/udp             # what this node itself sends
  turnout why 10.1.1.5 [fd00:96::14]:80 --probe  # and asks each endpoint whether it answers
  turnout why 10.1.1.5 10.96.0.20:80 --source file:services.yaml --backend ${EXAMPLE_BACKEND} --node-name n1 --cluster-cidr 10.1.0.0/16

Ask on the node that the packet comes to first: a pod's own node, or the node that a client addresses.
It asks the proxy that runs on this host, over a socket in /run/turnout; with --source or --backend it reads everything itself,
with the flags of the proxy that runs here, or those given if none does. It changes nothing.
Exit codes: 0 nothing wrong was found, 1 something was, or not everything could be looked at, 2 bad usage.`;

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
  addRuleOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (from: string, to: string, options: WhyOptions) => {
    // What looks at a host is large, and a proxy that runs has no use for it until it is asked.
    const { answerWhy } = await import("./why-run.ts");
    const answer = await answerWhy(command, [from, to], options, env);
    env.out(options.output === "json" ? outputJson(answer, 2) : answerText(answer));
    // What could not be looked at may be what is wrong.
    if (answer.causes.length > 0 || answer.unseen.length > 0) onCulprit();
  });
}
