import { FAMILIES } from "@turnout/core";
import { addressesOf, refs } from "../runner/short.ts";
import { LATER, nameOf, objectsOf, TROUBLED, WORKING } from "./recovery-run.ts";
import type { RecoveryRun } from "./recovery-run.ts";

/** A new row, and a new form of one that is in force, can't be programmed; a Service that comes later can. */
export async function refuseRow(run: RecoveryRun): Promise<void> {
  const { host } = run.runner;
  const before = run.runner.world;
  const own = addressesOf(TROUBLED, "clusterIP");
  const refused = addressesOf(TROUBLED, "externalIP");
  host.refuse(FAMILIES.flatMap((family) => [own[family], refused[family]]));
  run.put(TROUBLED);
  run.put(1, { externalIPs: FAMILIES.map((family) => refused[family]) });
  await run.restart();
  run.checkpoint("the first sync of the new process");
  const isRefused = (await run.syncAndLook(before, before, WORKING)).some(({ error }) => error !== undefined);
  if (!isRefused) run.found("a sync with a row that the host refuses", "it says so", "it succeeds");
  run.checkpoint("a Service comes while the row is refused");
  run.put(LATER);
  await run.syncAndLook(before, { ...before, objects: [...before.objects, ...objectsOf(LATER)] }, [...WORKING, LATER]);
  run.checkpoint("Services of the same shape go while the row is refused");
  for (const number of [2, 3, LATER]) for (const ref of refs(nameOf(number))) run.runner.remove(ref);
  await run.runner.sync();
  run.judge(before, [1]);
  host.refuse([]);
  await run.recover([1, TROUBLED]);
}
