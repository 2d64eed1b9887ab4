import { failingObject } from "../runner/failing-object.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { HOST_ADDRESSES } from "../runner/stage.ts";
import { LATER, nameOf, onTroubledHost, REST_MS, TROUBLED, WORKING } from "./recovery-run.ts";
import type { RecoveryRun, RecoverySetting } from "./recovery-run.ts";

const NODE_RANGES: readonly string[] = ["172.18.0.0/16", "fd00:18::/64"];

/** Have an object of a row, or of the skeleton, fail for ever. */
export async function failForEver(given: RecoverySetting, owner: "row" | "skeleton"): Promise<void> {
  const { subject, setting } = given;
  const failing = { ...given, subject: failingObject(subject, owner, nameOf(TROUBLED)), setting: onAllOf(NODE_RANGES, setting) };
  await onTroubledHost(failing, `an object of the ${owner} that fails for ever`, stayWithout);
}

/** One object is never in force; everything else is, and what changes later comes into force. */
async function stayWithout(run: RecoveryRun): Promise<void> {
  const { runner } = run;
  const before = runner.world;
  run.put(TROUBLED);
  await run.restart();
  run.checkpoint("the first sync of the new process");
  await run.syncAndLook(before, runner.world, [...WORKING, TROUBLED]);
  const between = runner.world;
  run.checkpoint("a Service comes, and the host gets another address");
  run.put(LATER);
  await runner.setHostAddresses(withOneMore(HOST_ADDRESSES));
  await run.syncAndLook(between, runner.world, [...WORKING, TROUBLED, LATER]);
  run.checkpoint("what failed is tried again");
  await runner.host.advance(REST_MS);
  await run.syncAndLook(runner.world, runner.world, [...WORKING, TROUBLED, LATER]);
}

/** Node ports on all of the host's addresses that are in these ranges: then another address changes what is there whatever the Services are. */
function onAllOf(ranges: readonly string[], setting: RunnerOptions): RunnerOptions {
  return { ...setting, settings: { ...setting.settings, nodePortAddresses: ranges } };
}

function withOneMore(addresses: typeof HOST_ADDRESSES): typeof HOST_ADDRESSES {
  return { IPv4: [...addresses.IPv4, "172.18.0.101"], IPv6: [...addresses.IPv6, "fd00:18::101"] };
}
