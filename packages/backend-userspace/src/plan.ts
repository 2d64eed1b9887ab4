import type { Delta, Due, Plan, Put } from "@turnout/core/backend";
import type { UserspaceObject } from "./objects.ts";

/** One thing to do. `finish`: see whether something that lingers is done, and by now has to be. */
export type Step =
  | { readonly do: "put"; readonly object: UserspaceObject; readonly before?: UserspaceObject }
  | { readonly do: "remove" | "finish"; readonly object: UserspaceObject };

/** What a socket is bound to is there before it and goes after it; clients are told apart before anybody answers them. */
const ORDER: readonly UserspaceObject["kind"][] = ["address", "host", "listener", "node-port", "left-out"];

/**
 * Order a difference: what is to be answered comes into force first, then what is not goes. Pure.
 *
 * Edges: two kinds of listeners may share a socket; as the new one comes first the socket stays open.
 */
export function planDelta({ put, remove, lingering }: Delta<UserspaceObject>): Plan<Step> {
  const puts = byOrder(put, ({ after }: Put<UserspaceObject>) => after);
  const removes = byOrder(remove, (object: UserspaceObject) => object).toReversed();
  return {
    steps: [
      ...puts.map(({ before, after }): Step => ({ do: "put", object: after, ...(before === undefined ? {} : { before }) })),
      ...removes.map((object): Step => ({ do: "remove", object })),
      ...lingering.map(({ object }: Due<UserspaceObject>): Step => ({ do: "finish", object })),
    ],
  };
}

function byOrder<T>(items: readonly T[], objectOf: (item: T) => UserspaceObject): readonly T[] {
  return ORDER.flatMap((kind) => items.filter((item) => objectOf(item).kind === kind));
}

/** Say a plan line by line. Pure. */
export function explainPlan({ steps }: Plan<Step>): string {
  return steps.map(explainStep).join("\n");
}

function explainStep(step: Step): string {
  const { object } = step;
  const verb = step.do === "put" ? (step.before === undefined ? "add" : "change") : step.do === "remove" ? "remove" : "finish";
  const id = `${verb} ${object.kind} ${object.key}`;
  if (step.do !== "put") return id;
  if (object.kind === "left-out") return `leave out ${object.value.addresses.join(", ")} of ${object.key}: ${object.value.why}`;
  if (object.kind !== "listener" && object.kind !== "node-port") return id;
  const { row, rules, cluster, local } = object.value;
  const pools = { cluster: `[${cluster.join(" ")}]`, local: `[${local.join(" ")}]` };
  const targets = rules.map(({ from, to }) => `${from} → ${to === "cluster" || to === "local" ? pools[to] : to}`);
  return `${id} of ${row}: ${targets.join(", ")}`;
}
