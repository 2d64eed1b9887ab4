import type { Answer, Cause } from "@turnout/core";
import { healthyCases } from "./cases.ts";
import type { Fault, HealthyCase, HealthyVariant } from "./fault.ts";
import { VM_BACKEND } from "./stage.ts";
import type { FaultStage } from "./stage.ts";

/** Healthy cases that are asked about at a time; a guest has one CPU. */
const AT_ONCE = 3;
const AT_ONCE_IN_VM = 1;

/** What became of one question. */
export interface Verdict {
  readonly kind: string;
  readonly name: string;
  /** What was to be named; "nothing" of a healthy case. */
  readonly expected: string;
  /** What was named. */
  readonly found: string;
  readonly says: string;
  readonly isRight: boolean;
}

/** Break something, ask, and mend it again. */
export async function runFault(stage: FaultStage, fault: Fault): Promise<Verdict> {
  const { kind } = fault;
  const ask = kind === "kernel" ? askWithoutProxy : askBetween;
  const { answer, untrue } = await withExtraFlags(stage, fault, () => ask(stage, fault));
  const [culprit] = answer.causes;
  // None was at work for these.
  const isReported = kind !== "kernel" || answer.causes.some(({ id }) => id === "not_running");
  return {
    kind,
    name: fault.name,
    expected: expectedOf(fault),
    found: culprit?.id ?? (answer.unjudged.length > 0 ? "can't be judged" : "nothing"),
    says: `${culprit?.says ?? ""}${untrue === undefined ? "" : ` (${untrue})`}`,
    isRight: isReported && isNamed(fault, culprit) && isTextThere(fault, answer) && untrue === undefined,
  };
}

function expectedOf({ culprits, unjudged, names }: Fault): string {
  if (culprits.length > 0) return `${culprits.join(" or ")}${names === undefined ? "" : ` that names "${names}"`}`;
  return unjudged === undefined ? "nothing" : "can't be judged";
}

function isNamed({ culprits, names, command }: Fault, culprit: Cause | undefined): boolean {
  if (culprit === undefined) return culprits.length === 0;
  const commands = [...(culprit.show ?? []), ...(culprit.commands ?? []), ...(culprit.instead?.commands ?? [])];
  const isCommandThere = command === undefined || commands.some((one) => one.startsWith(command));
  return culprits.includes(culprit.id) && isCommandThere && (names === undefined || culprit.says.includes(names));
}

function isTextThere({ step, note, unjudged }: Fault, answer: Answer): boolean {
  const isStepThere = step === undefined || answer.steps.some(({ says }) => says.includes(step));
  const isRuleThere = unjudged === undefined ? answer.unjudged.length === 0 : answer.unjudged.some(({ rule }) => rule.includes(unjudged));
  const isNoteThere = note === undefined || (answer.notes ?? []).some((one) => one.includes(note));
  return isStepThere && isNoteThere && isRuleThere;
}

/** An answer; `untrue`: what real connections showed otherwise. */
interface TriedAnswer {
  readonly answer: Answer;
  readonly untrue?: string | undefined;
}

/** Have the proxy run with other flags meanwhile. */
async function withExtraFlags<T>({ site, proxyFlags }: FaultStage, { extraFlags }: Fault, ask: () => Promise<T>): Promise<T> {
  if (extraFlags === undefined) return await ask();
  const proxy = site.proxy("node1");
  const startWith = async (flags: readonly string[]): Promise<void> => {
    if (proxy.isRunning) await proxy.end("SIGKILL");
    proxy.start(flags);
    await site.waitForSync();
  };
  try {
    await startWith([...proxyFlags, ...extraFlags]);
    return await ask();
  } finally {
    await startWith(proxyFlags);
  }
}

async function askBetween(stage: FaultStage, { ask, inject, fix, at, connections }: Fault): Promise<TriedAnswer> {
  if (inject !== undefined) await stage.shell(inject, at);
  try {
    const isLost = connections === undefined ? undefined : !(await arrives(stage, ask));
    const answer = await stage.ask(ask);
    if (connections === "arrive") return { answer, untrue: isLost === true ? "connections are lost" : undefined };
    if (connections === undefined) return { answer };
    if (isLost === false) return { answer, untrue: "connections arrive" };
    if (connections === "lost") return { answer };
    const [culprit] = answer.causes;
    const typed = (connections === "repaired" ? culprit?.commands : undefined) ?? culprit?.instead?.commands;
    for (const command of typed ?? []) await stage.shell(command);
    if (!(await arrives(stage, ask))) return { answer, untrue: "connections are lost after what was typed" };
    const left = (await stage.ask(ask)).causes[0];
    return { answer, untrue: left === undefined ? undefined : `after what was typed: ${left.says}` };
  } finally {
    if (fix !== undefined) await stage.shell(fix, at);
  }
}

/** Try enough connections that each endpoint is met. */
async function arrives({ site, backend }: FaultStage, { from, to, port }: Fault["ask"]): Promise<boolean> {
  const agent = site.place(from === "host" ? "node1" : from).agent();
  const { failed } = await agent.burst({
    address: to,
    port,
    transport: "TCP",
    timeoutMs: backend === VM_BACKEND ? 5_000 : 1_500,
    count: CONNECTIONS,
    concurrency: CONNECTIONS,
  });
  return Object.keys(failed).length === 0;
}

const CONNECTIONS = 12;

/**
 * The proxy would repair its rules within milliseconds, so it is ended meanwhile, or stopped. Unless the fault says how it is mended, that is done as the
 * answer says: the proxy is started again, or told to go on, and leaves nothing wrong in the kernel.
 */
async function askWithoutProxy(stage: FaultStage, { ask, inject = "", fix, isStopped }: Fault): Promise<TriedAnswer> {
  const { site } = stage;
  const proxy = site.proxy("node1");
  if (isStopped === true) proxy.backend.signal("SIGSTOP");
  else if (proxy.isRunning) await proxy.end("SIGKILL");
  const goOn = async (): Promise<void> => {
    if (isStopped === true) proxy.backend.signal("SIGCONT");
    else proxy.start();
    await site.waitForSync();
  };
  let answer: Answer;
  try {
    await stage.shell(inject);
    answer = await stage.ask(ask, true);
  } finally {
    await (fix === undefined ? goOn() : stage.shell(fix));
  }
  if (fix !== undefined) return { answer };
  const left = (await stage.ask(ask)).causes.find(({ id }) => id.startsWith("kernel_") || id === "not_running");
  return { answer, untrue: left === undefined ? undefined : `with the proxy again: ${left.says}` };
}

/** Ask about packets that arrive, with something around them that may be there. */
export async function runHealthy(
  stage: FaultStage,
  variant: HealthyVariant,
  cases: readonly HealthyCase[] = healthyCases(stage),
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const atOnce = stage.backend === VM_BACKEND ? AT_ONCE_IN_VM : AT_ONCE;
  try {
    await stage.shell(variant.inject);
    for (let at = 0; at < cases.length; at += atOnce)
      verdicts.push(...(await Promise.all(cases.slice(at, at + atOnce).map((one) => askHealthy(stage, variant.name, one)))));
  } finally {
    await stage.shell(variant.fix);
  }
  return verdicts;
}

async function askHealthy(stage: FaultStage, variant: string, { name, ask }: HealthyCase): Promise<Verdict> {
  const { causes, fate, unjudged } = await stage.ask(ask);
  const [culprit] = causes;
  const isRight = culprit === undefined && unjudged.length === 0 && (fate.is === "forward" || fate.is === "pass");
  const found = culprit?.id ?? (isRight ? "nothing" : fate.is);
  return { kind: `healthy: ${variant}`, name, expected: "nothing", found, says: culprit?.says ?? "", isRight };
}

/** Write verdicts as a Markdown table, faults one a line, healthy cases summed up. Pure. */
export function verdictTable(verdicts: readonly Verdict[]): string {
  const faults = verdicts.filter(({ kind }) => !kind.startsWith("healthy"));
  const healthy = Map.groupBy(
    verdicts.filter(({ kind }) => kind.startsWith("healthy")),
    ({ kind }) => kind,
  );
  const named = faults.filter(({ isRight }) => isRight).length;
  const lines = faults.map(
    ({ kind, name, expected, found, isRight }) =>
      `| ${kind} | ${name} | ${isRight ? `\`${found}\`` : `**${found}** instead of ${expected}`} |`,
  );
  const sums = [...healthy].map(
    ([kind, of]) => `| ${kind} | ${of.length} packets | ${of.filter(({ isRight }) => !isRight).length} blamed |`,
  );
  return [
    `${named} of ${faults.length} faults named.`,
    "",
    "| where | what was broken | culprit named |",
    "|---|---|---|",
    ...lines,
    ...sums,
    "",
  ].join("\n");
}
