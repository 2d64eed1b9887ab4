import { addLogOptions, collect, OPTION_HELP } from "@turnout/client/daemon";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { outputJson } from "../output-json.ts";
import { addAddress } from "../running-proxy.ts";
import { BACKEND_HELP, EXAMPLE_BACKEND } from "../registry.ts";
import type { DoctorOptions } from "./doctor/doctor-run.ts";

const EXAMPLES = `
Examples:
  turnout doctor                       # every backend that comes with turnout
  turnout doctor --backend ${EXAMPLE_BACKEND} -o json

Reads only. Exit codes: 0 nothing is wrong (risks and notes may be told), 1 a fault was found, or the backend
asked for can't run here, or none can; 2 bad usage.`;

/** Add `turnout doctor`. */
export function addDoctor(program: Command, env: Environment, onFault: () => void): void {
  const command = program.command("doctor").description("say what of this host is against a service proxy, and what to do about it");
  command
    .option("--backend <backend>", `only this one: ${BACKEND_HELP}`)
    .option("--backend-option <name=value>", OPTION_HELP, collect, [])
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"));
  addAddress(command);
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: DoctorOptions) => {
    // What looks at a host is large, and a proxy that runs has no use for it.
    const [{ diagnoseHost }, { diagnosisText }] = await Promise.all([
      import("./doctor/doctor-run.ts"),
      import("./doctor/doctor-report.ts"),
    ]);
    const diagnosis = await diagnoseHost(options, env);
    env.out(options.output === "json" ? outputJson(diagnosis, 2) : diagnosisText(diagnosis));
    if (diagnosis.findings.some(({ severity }) => severity === "fault")) onFault();
  });
}
