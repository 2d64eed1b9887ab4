import type { BackendModule } from "@turnout/core";
import type { Findings } from "./findings.ts";
import { differenceOf, syncAndNote } from "./health-checks.ts";
import type { Runner } from "../runner/runner.ts";
import { deltaText } from "../runner/watched-backend.ts";
import { whileTimePasses } from "../runner/while-time-passes.ts";

/** Longer than anything lingers that only waits for packets under way. */
const REST_MS = 10_000;

/** Look whether a history has ended where one sync from nothing ends. */
export async function checkEnd(runner: Runner, newRunner: () => Promise<Runner>, findings: Findings): Promise<void> {
  await syncToRest(runner, findings);
  const fresh = await newRunner();
  await syncToRest(fresh, findings);
  const details = differenceOf(fresh.host.own(), runner.host.own());
  await checkLeftovers(fresh, findings);
  await fresh.close();
  if (details.length === 0) return;
  const family = details.some((line) => line.includes("IPv6") || line.includes("ip6")) ? "IPv6" : "IPv4";
  findings.add({
    kind: "leftover",
    family,
    what: "what is in force",
    expected: "as after one sync from nothing",
    got: `${details.length} differences`,
    details: details.slice(0, 12),
  });
}

/** Sync, let what lingers go, and sync until that is done. */
async function syncToRest(runner: Runner, findings: Findings): Promise<void> {
  await syncAndNote(runner, findings);
  await runner.host.advance(REST_MS);
  await syncAndNote(runner, findings, "again");
}

/**
 * What a backend has is no leftover while it is in use, and all of it is once another has taken its place. It is live then and nobody else's: where
 * nobody names a backend, a start goes on with the one whose rules are found.
 */
async function checkLeftovers({ host, processes }: Runner, findings: Findings): Promise<void> {
  const own = host.own();
  let families = 0;
  for (const isInUse of [true, false]) {
    for (const life of processes) {
      try {
        const leftovers = await life.clearLeftovers(isInUse);
        if (leftovers === undefined) continue;
        families += 1;
        // A backend that has nothing in force here tells of nothing; what it forgets to tell of is found below.
        if (isInUse || leftovers.length === 0) continue;
        if (leftovers.some(({ by, isLive }) => by !== "kube-proxy" && isLive !== false)) continue;
        findings.add({
          kind: "leftover",
          family: life.family,
          what: "what it says of its rules once it is not in use",
          expected: "one that is live, and not kube-proxy's",
          got: "none",
          details: leftovers.map(({ what, by = "either's", isLive = true }) => `${what}: ${by}, ${isLive ? "live" : "not live"}`),
        });
      } catch (error) {
        findings.threw("clearing leftovers", life.family, error);
      }
    }
    // A backend that looks for none leaves none.
    if (families === 0) return;
    const details = differenceOf(isInUse ? own : [], host.own()).slice(0, 12);
    if (details.length > 0)
      findings.add({
        kind: "cleanup",
        family: processes[0]?.family ?? "IPv4",
        what: isInUse ? "leftovers beside a backend in use" : "leftovers of a backend that was replaced",
        expected: isInUse ? "none of its own" : "all of its own",
        got: `${details.length} differences`,
        details,
      });
  }
}

/** Clean up family by family: each takes all of its own and nothing else. */
export async function checkCleanup(runner: Runner, module: BackendModule, findings: Findings): Promise<void> {
  const isKernel = module.residence === "kernel";
  const family = runner.processes[0]?.family ?? "IPv4";
  if (isKernel) await cleanUpEach(runner, findings);
  else await runner.close().catch((error: unknown) => findings.threw("cleanup", family, error));
  const left = runner.host.own();
  if (left.length > 0)
    findings.add({
      kind: "cleanup",
      family,
      what: "what is left after cleanup",
      expected: "nothing",
      got: `${left.length} things`,
      details: left.slice(0, 12),
    });
  await runner.close();
}

async function cleanUpEach({ host, processes }: Runner, findings: Findings): Promise<void> {
  for (const [index, life] of processes.entries()) {
    await whileTimePasses(host, life.cleanUp()).catch((error: unknown) => findings.threw("cleanup", life.family, error));
    for (const other of processes.slice(index + 1)) await checkUntouched(other, life.family, findings);
  }
}

async function checkUntouched(life: Runner["processes"][number], by: string, findings: Findings): Promise<void> {
  life.audit();
  const { put, removed, error } = await life.sync();
  const { deltas } = life.notes;
  if (error !== undefined) findings.threw(`sync after the cleanup of ${by}`, life.family, error);
  if (put + removed > 0)
    findings.add({
      kind: "cleanup",
      family: life.family,
      what: `cleanup of ${by}`,
      expected: "only its own family goes",
      got: `${put} to put, ${removed} to remove`,
      details: deltas.map(deltaText),
    });
  life.notes.clear();
}
