import { appendFileSync } from "node:fs";

/** What is to be checked in a guest, each by a name of its own; a check that throws has failed. */
export type VmChecks = Readonly<Record<string, () => void | Promise<void>>>;

/** How a check ended: one line of JSON, from the guest to its host. */
export interface VmCheckReport {
  readonly name: string;
  readonly error?: { readonly message: string; readonly stack?: string };
}

/**
 * Play checks one after another, each to its end, and report each at once. Called by a program that runs in a guest.
 *
 * Edges: a check that fails stops no other. What checks leave behind the next one finds: clean up as in any test.
 * @throws {Error} outside a guest.
 */
export async function runVmChecks(checks: VmChecks): Promise<void> {
  const file = process.env["TURNOUT_VM_REPORT"];
  if (file === undefined) throw new Error("checks are played in a guest: there is no TURNOUT_VM_REPORT");
  for (const [name, check] of Object.entries(checks)) {
    appendFileSync(file, `${JSON.stringify(await reportOf(name, check))}\n`);
  }
}

async function reportOf(name: string, check: () => void | Promise<void>): Promise<VmCheckReport> {
  try {
    await check();
    return { name };
  } catch (error) {
    if (!(error instanceof Error)) return { name, error: { message: String(error) } };
    return { name, error: { message: error.message, ...(error.stack === undefined ? {} : { stack: error.stack }) } };
  }
}
