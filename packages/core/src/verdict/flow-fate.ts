import { isServing } from "./pools.ts";
import { sceneOf } from "./scene.ts";
import type { Owner, Scene } from "./scene.ts";
import type { OracleRow } from "./read-services.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Flow } from "./packet.ts";

/** What must become of a remembered UDP flow; `either`: the rulebook leaves it open. */
export type FlowFate = "forget" | "keep" | "either";

/**
 * Say what must become of a UDP flow that was there before a change, once the change is in force (rules ).
 *
 * Edges: what nobody's row has to do with is kept. Where nothing changed for the flow, one that should not be there may be found or not:
 * only changed rows are looked at, and after a restart all.
 * @source semantics.md 4.6; docs/adr/0008
 */
export function flowFate(before: OracleWorld, after: OracleWorld, flow: Flow): FlowFate {
  const then = sceneOf(before, flow.family);
  const now = sceneOf(after, flow.family);
  const target = { ...flow, protocol: "UDP" } as const;
  const had = then.ownerOf(target);
  const has = now.ownerOf(target);
  if (has === undefined)
    return had !== undefined && serves(then, had.row, flow)
      ? "forget"
      : had !== undefined && knows(then, had.row, flow)
        ? "either"
        : "keep";
  if (serves(now, has.row, flow)) return "keep";
  if (has.kind === "nodePort" && !now.endpointsOf(has.row).some(isServing)) return fateOnEmptyNodePort(then, had, has, flow);
  return isSame(then, had, now, has) ? "either" : "forget";
}

/** Rule R-43: there, only flows to endpoints it had are its own for sure. */
function fateOnEmptyNodePort(then: Scene, had: Owner | undefined, has: Owner, flow: Flow): FlowFate {
  if (had === undefined || !knows(then, had.row, flow)) return "keep";
  return had.row.key === has.row.key && serves(then, had.row, flow) ? "forget" : "either";
}

function serves(scene: Scene, row: OracleRow, flow: Flow): boolean {
  return scene.endpointsOf(row).some((endpoint) => endpoint.text === flow.endpoint && isServing(endpoint));
}

function knows(scene: Scene, row: OracleRow, flow: Flow): boolean {
  return scene.endpointsOf(row).some((endpoint) => endpoint.text === flow.endpoint);
}

/** Whether the same row answers with the same endpoints as before. */
function isSame(then: Scene, had: Owner | undefined, now: Scene, has: Owner): boolean {
  if (had === undefined || had.row.key !== has.row.key || had.kind !== has.kind) return false;
  const serving = (scene: Scene, row: OracleRow): string =>
    scene
      .endpointsOf(row)
      .filter(isServing)
      .map(({ text }) => text)
      .join();
  return serving(then, had.row) === serving(now, has.row);
}
