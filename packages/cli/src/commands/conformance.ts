import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { addBackendOptions } from "../options.ts";
import { EXAMPLE_BACKEND } from "../registry.ts";
import type { ConformanceOptions } from "./conformance/conformance-exam.ts";

const EXAMPLES = `
Examples:
  turnout conformance                                             # every backend that comes with turnout
  turnout conformance --backend @acme/turnout-backend             # its host in memory: @acme/turnout-backend/testing
  turnout conformance --backend ./my-backend                      # a directory with a package.json: as the package in it
  turnout conformance --backend ./src/index.ts --host ./src/testing.ts
  turnout conformance --backend ./src/index.ts --host ./src/testing.ts --only R-28
  turnout conformance --backend ${EXAMPLE_BACKEND} --histories 10000             # random changes and faults too; --seed N repeats one

Scenarios are played on the backend's host in memory: nothing of this machine is touched, no rights are needed. A backend that has none is played in
this machine's kernel, in namespaces that are gone afterwards; where that can't be done, without root for example, it is left out.
The rules are those of docs/rules.md. Exits with 1 if there are findings.`;

/** Add `turnout conformance`. */
export function addConformance(program: Command, env: Environment): void {
  const command = program
    .command("conformance")
    .description("examine a backend, also a third party's: does it do what a service proxy must");
  addBackendOptions(command, undefined);
  command
    .option(
      "--host <host>",
      "package or path that exports createFakeHost (default: the backend's door ./testing; for a file, the module itself)",
    )
    .option("--only <rule or words>", "play only the scenarios of a rule (R-28), or whose name contains these words")
    .option("--histories <steps>", "also make so many random changes, with faults in between, and compare with one sync from nothing")
    .option("--seed <number>", "of the histories (default: the time; it is printed)")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"));
  command.option("-v, --verbose", "show every finding; errors come with cause and stack");
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: ConformanceOptions) => {
    // The kit is large, and no other command plays it.
    const { examine } = await import("./conformance/conformance-exam.ts");
    await examine(options, env);
  });
}
