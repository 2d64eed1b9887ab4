import { isEqual } from "@turnout/core";
import type { FamilyProcess } from "../../runner/family-process.ts";
import type { Runner } from "../../runner/runner.ts";
import { HOST_ADDRESSES } from "../../runner/stage.ts";
import type { Complain } from "../findings.ts";
import { WatchListener } from "./watch-listener.ts";

/** Longer than anything that looks by itself waits between two looks. */
const REST_MS = 60_000;

/**
 * Look whether a backend hears of the host's addresses: of those that came after its probe and before its `watch`, and of those that come later.
 *
 * Shape: for a player with one family whose rules are in force.
 * Edges: where a probe says the same whatever the addresses are, there is nothing to hear of.
 */
export async function checkFacts(runner: Runner, complain: Complain): Promise<void> {
  const [life] = runner.processes;
  if (life === undefined) return;
  const facts = await runner.moveHost(withOneMore(1));
  if (isEqual(facts, life.facts)) return;
  if (!life.watches) return complain("facts that change with the host's addresses", "a watch() that tells them", "there is none");
  const listener = new WatchListener(life);
  await runner.host.advance(REST_MS);
  judge(listener, facts, "watch() of a host whose addresses have changed since the probe", complain);
  const later = await runner.moveHost(withOneMore(2));
  await runner.host.advance(REST_MS);
  if (isEqual(listener.facts, facts)) complain("watch() when the host's addresses change", "the facts as they are now", "none");
  else judge(listener, later, "watch() when the host's addresses change", complain);
  listener.stop();
}

function judge(listener: WatchListener, facts: FamilyProcess["facts"], what: string, complain: Complain): void {
  if (isEqual(listener.facts, facts)) return;
  const got = listener.facts === undefined ? "none" : "others";
  complain(what, "the facts as they are now, and as a probe tells them", got, listener.end === undefined ? [] : [listener.end]);
}

function withOneMore(number: number): typeof HOST_ADDRESSES {
  return { IPv4: [...HOST_ADDRESSES.IPv4, `172.18.0.${100 + number}`], IPv6: [...HOST_ADDRESSES.IPv6, `fd00:18::${100 + number}`] };
}
