import { addLogOptions } from "@turnout/client/daemon";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { BACKEND_HELP, ROOTLESS_BACKEND } from "../registry.ts";
import type { DemoCommandOptions } from "./demo-run.ts";

const EXAMPLES = `
Examples:
  turnout demo            # builds it, shows it, removes it
  turnout demo --keep     # leaves it, and says what to try
  turnout demo --clean    # removes what --keep left

Everything happens in network namespaces of its own, which needs root; this host's own network is not touched.
Where they can't be made, a smaller story is played on loopback, with the ${ROOTLESS_BACKEND} backend (or with --backend ${ROOTLESS_BACKEND}, anywhere).
Exits with 1 if a single request failed.`;

/** Add `turnout demo`. */
export function addDemo(program: Command, env: Environment): void {
  const command = program.command("demo").description("a cluster in namespaces on this machine, traffic through it, a report");
  command
    .option("--backend <backend>", BACKEND_HELP, "auto")
    .option("--keep", "leave the cluster running and say what to try")
    .option("--clean", "remove a cluster that --keep left")
    .addOption(new Option("--hold", "turnout's own").hideHelp());
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: DemoCommandOptions) => {
    // The laboratory is large, and no other command needs it.
    const { runDemo } = await import("./demo-run.ts");
    await runDemo(options, env);
  });
}
