import { readFileSync, writeFileSync, writeSync } from "node:fs";
import type { Reporter, TestModule, Vitest } from "vitest/node";
import type { SerializedError } from "vitest";
import { shareSeed } from "./some-of.ts";
import { recordedSeconds, SECONDS_FILE, withSeconds } from "./test-plan.ts";
import { closingLine, countRun, isNamed, parseAllowedSkips } from "./run-count.ts";

/** Ends the run with the plain line `N passed, N failed, N skipped`, and fails it for a skip nobody allowed. */
export default class ClosingLineReporter implements Reporter {
  #vitest: Pick<Vitest, "config"> | undefined;

  /** Keep hold of the run: the pattern of `-t` may change while vitest watches. */
  onInit(vitest: Pick<Vitest, "config">): void {
    this.#vitest = vitest;
  }

  /** Say which share of costly tests is run, so that it can be run again. */
  onTestRunStart(): void {
    process.stdout.write(`shares of today: TURNOUT_SHARE=${shareSeed()}\n`);
  }

  /** Count, complain, and leave the line for the very end of the output. */
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const allowed = parseAllowedSkips(readFileSync(new URL("allowed-skips.txt", import.meta.url), "utf8"));
    const pattern = this.#vitest?.config.testNamePattern;
    const tests = modules.flatMap((module) => [...module.children.allTests()]).filter(({ fullName }) => isNamed(fullName, pattern));
    const brokenModules = modules.filter((module) => module.errors().length > 0).length;
    const count = countRun(
      tests.map((test) => ({
        name: `${test.module.relativeModuleId} > ${test.fullName}`,
        state: test.result().state,
        unmetNeeds: test.meta().unmetNeeds,
      })),
      brokenModules + errors.length,
      allowed,
    );
    if (process.env["TURNOUT_RECORD_SECONDS"] === "1") {
      const took = new Map(modules.map((module) => [module.relativeModuleId, module.diagnostic().duration]));
      writeFileSync(SECONDS_FILE, `${JSON.stringify(withSeconds(recordedSeconds(), took), undefined, 2)}\n`);
    }
    for (const complaint of count.complaints) process.stderr.write(`${complaint}\n`);
    if (count.failed > 0) process.exitCode = 1;
    // On exit, since other reporters and vitest itself may still have something to say.
    process.once("exit", () => writeSync(1, `${closingLine(count)}\n`));
  }
}
