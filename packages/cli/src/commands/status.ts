import { addVerbose, quietLogFor, type CommonOptions } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { outputJson } from "../output-json.ts";
import { addAddress, askProxy, type RunningProxyOptions } from "../running-proxy.ts";
import { timeText } from "../status/ages.ts";
import { statusLine, statusText, type Status } from "../status/status-text.ts";

interface StatusOptions extends CommonOptions, RunningProxyOptions {
  readonly output: "text" | "json";
  readonly watch?: true;
}

const EXAMPLES = `
Examples:
  turnout status
  turnout status --watch
  turnout status -o json | jq '.families[].refused'
  turnout status --address 10.0.0.7:10249        # a proxy with that --metrics-bind-address
  turnout status --address 127.0.0.1:12091       # a node-state server (turnout serve) with that one

It asks the proxy that runs on this host, over its metrics port, and changes nothing.
Exit codes: 0 the proxy answered, whatever it said; 1 it didn't.`;

const WATCH_MS = 1_000;
/** Cursor home, and clear to the end: without the flicker of clearing first. */
const [HOME, CLEAR_LINE, CLEAR_BELOW] = ["\u001b[H", "\u001b[K", "\u001b[J"];

/** Add `turnout status`. */
export function addStatus(program: Command, env: Environment): void {
  const command = program
    .command("status")
    .description("show what the proxy that runs on this host has in force, what waits, what was refused, and how fast changes are");
  addAddress(command);
  command
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"))
    .option(
      "-w, --watch",
      "show it again each second: in place on a terminal, else a line whenever a change set came or what it says is another",
    );
  addVerbose(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: StatusOptions) => {
    if (options.watch === true) await watch(options, env);
    else env.out(shown(await ask(options, env), options));
  });
}

async function ask(options: StatusOptions, { signal }: Environment): Promise<Status> {
  return (await askProxy(options, "/turnout/status", signal)) as Status;
}

function shown(status: Status, { output }: StatusOptions): string {
  return output === "json" ? outputJson(status, 2) : statusText(status);
}

/** Show it each second until stopped; a proxy that doesn't answer is waited for: it may be restarted just now. */
async function watch(options: StatusOptions, env: Environment): Promise<void> {
  const { clock } = env.createWorld(quietLogFor(options, env));
  let before = "";
  for (let isFirst = true; !env.signal.aborted; isFirst = false) {
    const answer = await ask(options, env).catch((error: unknown) => {
      // Before the first answer it is more likely a mistake.
      if (isFirst || !ProxyError.is(error)) throw error;
      return error;
    });
    if (env.signal.aborted) return;
    before = show(answer, options, env, before);
    await clock.sleep(WATCH_MS, env.signal);
  }
}

/** Returns the line that was shown last. */
function show(answer: Status | ProxyError, options: StatusOptions, env: Environment, before: string): string {
  if (options.output === "json") {
    if (!ProxyError.is(answer)) env.out(outputJson(answer));
    return before;
  }
  if (env.isOutputTerminal) {
    const text = ProxyError.is(answer) ? `${answer.message}\n` : statusText(answer);
    env.out(`${HOME}${text.replaceAll("\n", `${CLEAR_LINE}\n`)}${CLEAR_BELOW}`);
    return before;
  }
  const line = ProxyError.is(answer) ? answer.message : statusLine(answer);
  if (line !== before) env.out(`${timeText(env.nowMs(), env.nowMs())} ${line}\n`);
  return line;
}
