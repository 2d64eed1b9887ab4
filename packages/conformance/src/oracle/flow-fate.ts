import { keepsFlows } from "./pools.ts";
import { sceneOf } from "./scene.ts";
import type { Owner, Scene, RequestAddress } from "./scene.ts";
import type { OracleRow } from "./read-services.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Flow } from "./packet.ts";

/** What must become of a remembered UDP flow; `either`: the rulebook leaves it open. */
export type FlowFate = "forget" | "keep" | "either";

/**
 * Say what must become of a UDP flow that was there before a change, once the change is in force (rules ).
 *
 * Edges: what no row has to do with is kept. Where nothing changed for the flow, one that should not be there may be found or not:
 * only changed rows are looked at, and after a restart all. Of the host's own addresses a node port's number may stand for all, and
 * which of them answer node ports is no row's affair.
 * @source rules; docs/adr/0008
 */
export function flowFate(before: OracleWorld, after: OracleWorld, flow: Flow): FlowFate {
  const then = sceneOf(before, flow.family);
  const now = sceneOf(after, flow.family);
  const target: RequestAddress = { destination: flow.destination, port: flow.port, protocol: "UDP" };
  const had = then.ownerOf(target);
  const has = now.ownerOf(target);
  if (isMixedUp(then, had, now, has, target)) return "either";
  const fate = has === undefined ? fateOfGivenUp(then, had, flow) : fateOn(then, had, now, has, flow);
  return fate === "forget" && isSameElsewhere(then, had, now, has, target) ? "either" : fate;
}

/** Rule R-44. */
function fateOfGivenUp(then: Scene, had: Owner | undefined, flow: Flow): FlowFate {
  if (had === undefined || !knows(then, had.row, flow)) return "keep";
  return serves(then, had.row, flow) ? "forget" : "either";
}

/** Rules. */
function fateOn(then: Scene, had: Owner | undefined, now: Scene, has: Owner, flow: Flow): FlowFate {
  if (serves(now, has.row, flow)) return "keep";
  if (has.kind === "nodePort" && !now.endpointsOf(has.row).some(keepsFlows)) {
    // There, only flows to endpoints of the row that had it are its own for sure (rules ).
    if (had !== undefined && serves(then, had.row, flow)) return "forget";
    return [had, has].some((owner) => owner !== undefined && knows(then, owner.row, flow)) ? "either" : "keep";
  }
  return isSame(then, had, now, has) ? "either" : "forget";
}

function serves(scene: Scene, row: OracleRow, flow: Flow): boolean {
  return scene.endpointsOf(row).some((endpoint) => endpoint.text === flow.endpoint && keepsFlows(endpoint));
}

function knows(scene: Scene, row: OracleRow, flow: Flow): boolean {
  return scene.endpointsOf(row).some((endpoint) => endpoint.text === flow.endpoint);
}

/** Whether the same row answers with the same endpoints as before. */
function isSame(then: Scene, had: Owner | undefined, now: Scene, has: Owner): boolean {
  return had?.row.key === has.row.key && servingOf(then, had.row) === servingOf(now, has.row);
}

function servingOf(scene: Scene, row: OracleRow): string {
  const serving = scene.endpointsOf(row).filter(keepsFlows);
  return serving.map(({ text }) => text).join();
}

/** Whether all that changed is that the host's address began or ceased to answer node ports: no row's change. */
function isSameElsewhere(then: Scene, had: Owner | undefined, now: Scene, has: Owner | undefined, target: RequestAddress): boolean {
  if ((had === undefined) === (has === undefined) || (had ?? has)?.kind !== "nodePort") return false;
  const [before, after] = [then.nodePortOwner(target), now.nodePortOwner(target)];
  return before !== undefined && before.key === after?.key;
}

/**
 * Whether an address of the host, an external IP at that or nobody's, has a port that is somebody's node port too: which of the two a
 * flow is for can't be told from outside.
 */
function isMixedUp(then: Scene, had: Owner | undefined, now: Scene, has: Owner | undefined, target: RequestAddress): boolean {
  if (!now.node.hostAddresses.has(target.destination)) return false;
  const [before, after] = [then.nodePortOwner(target), now.nodePortOwner(target)];
  if (has === undefined && after !== undefined) return true;
  if (had === undefined && has === undefined) return before !== undefined;
  return [had, has].some(
    (owner) =>
      owner !== undefined && owner.kind !== "nodePort" && [before, after].some((row) => row !== undefined && row.key !== owner.row.key),
  );
}
