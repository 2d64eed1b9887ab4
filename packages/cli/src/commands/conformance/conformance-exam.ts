import { ProxyError, type BackendModule } from "@turnout/core";
import { optionsFromFlags, type TypedOption, isVerbose, typedOptions, type CommonOptions } from "@turnout/client/daemon";
import { checkBackend, SCENARIOS, type Scenario } from "@turnout/conformance";
import type { Environment } from "../../environment.ts";
import { KNOWN_BACKENDS, loadBackend, loadKit } from "../../registry.ts";
import { CallWatch } from "./conformance-calls.ts";
import { runHistories } from "./conformance-histories.ts";
import { backendReport, leftOutReport, reportText, type BackendReport, type Histories } from "./conformance-report.ts";

/** The flags of `turnout conformance`. */
export interface ConformanceOptions extends CommonOptions {
  readonly host?: string;
  readonly only?: string;
  readonly histories?: string;
  readonly seed?: string;
  readonly output: "text" | "json";
}

/** Examine one backend or all, and print what was found. @throws {ProxyError} `tool_failed` when there are findings. */
export async function examine(options: ConformanceOptions, env: Environment): Promise<void> {
  const { backend, host, only, output } = options;
  const isAll = backend === undefined || backend === "auto";
  if (isAll && host !== undefined)
    throw new ProxyError("invalid_object", "it belongs to one backend", { object: "--host", hint: "pass --backend too" });
  const exam: Exam = {
    scenarios: scenariosOf(only),
    histories: historiesOf(options, env.nowMs()),
    typed: typedOptions(options),
  };
  const reports: BackendReport[] = [];
  for (const name of isAll ? KNOWN_BACKENDS.map((known) => known.name) : [backend]) {
    const report = await examineOne(name, host, exam, env);
    reports.push(report);
    if (output === "text") env.out(reportText(report, isVerbose(options)));
  }
  if (output === "json") env.out(`${JSON.stringify(reports, undefined, 2)}\n`);
  const [leftOut] = reports.filter((report) => report.leftOut !== undefined);
  if (!isAll && leftOut !== undefined)
    throw new ProxyError("host_unsupported", "this machine can't play the conformance kit", {
      object: `backend ${leftOut.backend}: ${leftOut.leftOut}`,
    });
  const failed = reports.filter(({ conforms, leftOut: why }) => !conforms && why === undefined).map((report) => report.backend);
  if (failed.length > 0)
    throw new ProxyError("tool_failed", "the conformance kit has findings", { object: `backend ${failed.join(", ")}` });
}

/** What backends are examined with. */
interface Exam {
  readonly scenarios: readonly Scenario[];
  readonly histories: Histories | undefined;
  /** The backend's own options. */
  readonly typed: readonly TypedOption[];
}

async function examineOne(name: string, host: string | undefined, exam: Exam, env: Environment): Promise<BackendReport> {
  const module: BackendModule = await loadBackend(name, env.workingDirectory);
  const kit = await loadKit(name, host, env.workingDirectory);
  const { scenarios, histories } = exam;
  const options = optionsFromFlags(exam.typed, module);
  module.parseOptions(options);
  if ("examine" in kit) {
    const examination = { scenarios, backendOptions: options, signal: env.signal, ...(histories && { histories }) };
    const examined = await kit.examine(examination);
    return "leftOut" in examined ? leftOutReport(module, examined.leftOut) : backendReport(examined, histories);
  }
  const watch = new CallWatch(module, kit.createFakeHost);
  const { onCheckpoint } = watch;
  const checked = checkBackend(watch.module, watch.createFakeHost, scenarios, { backendOptions: options, onCheckpoint });
  const report = await watch.ended(checked, process);
  if (histories === undefined) return backendReport(report);
  const found = await watch.ended(runHistories(watch, histories, options, env), process);
  return backendReport({ ...report, findings: [...report.findings, ...found] }, histories);
}

/** @throws {ProxyError} `invalid_object` for what is no number, or a seed of nothing. */
function historiesOf({ histories, seed }: ConformanceOptions, nowMs: number): Histories | undefined {
  if (histories !== undefined)
    return { steps: wholeNumber(histories, "--histories", 1), seed: seed === undefined ? nowMs % 2 ** 31 : wholeNumber(seed, "--seed", 0) };
  if (seed === undefined) return undefined;
  throw new ProxyError("invalid_object", "there is nothing it could be the seed of", { object: "--seed", hint: "pass --histories too" });
}

function wholeNumber(text: string, option: string, min: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number < 2 ** 31) return number;
  throw new ProxyError("invalid_object", `${JSON.stringify(text)} is no whole number from ${min}`, { object: option });
}

/** @throws {ProxyError} `invalid_object` when no scenario is left. */
function scenariosOf(only: string | undefined): readonly Scenario[] {
  const chosen = SCENARIOS.filter(({ name, rules }) => only === undefined || rules.includes(only.toUpperCase()) || name.includes(only));
  if (chosen.length > 0) return chosen;
  throw new ProxyError("invalid_object", `no scenario is of a rule, or has the words, ${JSON.stringify(only)}`, {
    object: "--only",
    hint: "rules are written R-28",
  });
}
