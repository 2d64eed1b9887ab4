import { objectId } from "@turnout/core/backend";
import type { Delta, Plan } from "@turnout/core/backend";
import { readFrontend } from "./objects.ts";
import type { LoadBalancerObject, WinkernelObject } from "./objects.ts";

/** One object to bring into force or to take away. */
export interface Step {
  readonly do: "put" | "remove";
  readonly object: WinkernelObject;
  /** What is in force, where something is. */
  readonly before?: WinkernelObject;
}

/**
 * Put a difference in an order that HNS accepts: endpoints before load balancers that name them, the reverse on removal.
 *
 * Shape: each load balancer comes right after the endpoints that it needs, so that the newest change is in force first. Load balancers that go
 * take turns with those that come, so that neither waits for all of the others, but wait for one that takes over.
 */
export function planDelta({ put, remove, lingering }: Delta<WinkernelObject>): Plan<Step> {
  const going = [...remove, ...lingering.map(({ object }) => object)];
  const steps = put.map(({ after, before }): Step => ({ do: "put", object: after, ...(before === undefined ? {} : { before }) }));
  const waiting = new Map(steps.filter(({ object }) => object.kind !== "loadbalancer").map((step) => [objectId(step.object), step]));
  const coming = steps.flatMap((step): readonly (readonly Step[])[] => {
    if (step.object.kind !== "loadbalancer") return [];
    const needed = neededBy(step.object).flatMap((id) => waiting.get(id) ?? []);
    for (const { object } of needed) waiting.delete(objectId(object));
    return [[...needed, step]];
  });
  const leaving = going.filter(({ kind }) => kind === "loadbalancer").map((object): readonly Step[] => [{ do: "remove", object }]);
  const unused = going.filter(({ kind }) => kind !== "loadbalancer").map((object): Step => ({ do: "remove", object }));
  return { steps: [...alternating(coming, leaving), ...waiting.values(), ...unused] };
}

function neededBy({ key, value }: LoadBalancerObject): readonly string[] {
  const { vip } = readFrontend(key);
  return [`source-vip ${value.sourceVip}`, `endpoint ${vip}`, ...value.endpoints.map((ip) => `endpoint ${ip}`)];
}

/** One of each in turn; but a node port and an address at the same port may take over from each other, so what leaves waits for what comes. */
function alternating(coming: readonly (readonly Step[])[], leaving: readonly (readonly Step[])[]): readonly Step[] {
  const lastOf = new Map(coming.map((steps, index) => [takerOf(steps.at(-1)), index]));
  const slots = Map.groupBy(leaving.entries(), ([index, [step]]) => Math.max(index, lastOf.get(giverOf(step)) ?? 0));
  const count = Math.max(coming.length, ...[...slots.keys()].map((slot) => slot + 1));
  return Array.from({ length: count }, (_, index) => [
    ...(coming[index] ?? []),
    ...(slots.get(index) ?? []).flatMap(([, steps]) => steps),
  ]).flat();
}

function takerOf(step: Step | undefined): string {
  const { protocol, vip, port } = readFrontend(step?.object.key ?? "");
  return `${protocol} ${vip === "" ? "node port" : "address"} ${port}`;
}

function giverOf(step: Step | undefined): string {
  const { protocol, vip, port } = readFrontend(step?.object.key ?? "");
  return `${protocol} ${vip === "" ? "address" : "node port"} ${port}`;
}

/** Say a plan for people. */
export function explainPlan({ steps }: Plan<Step>): string {
  if (steps.length === 0) return "# nothing to do\n";
  return steps.map((step) => `${line(step)}\n`).join("");
}

function line({ do: what, object, before }: Step): string {
  if (object.kind === "endpoint" && object.isLocal === true) return `${what === "put" ? "use" : "leave"} ${objectId(object)} of this host`;
  if (what === "remove") return `delete ${objectId(object)}`;
  return `${before === undefined ? "create" : "change"} ${objectId(object)}${settingsText(object)}`;
}

function settingsText(object: WinkernelObject): string {
  if (object.kind === "source-vip") return ` mac ${object.value}`;
  if (object.kind === "endpoint")
    return ` mac ${object.value.mac}${object.value.provider === "" ? "" : ` provider ${object.value.provider}`}`;
  const { endpoints, port, flags, portFlags, distribution, sourceVip } = object.value;
  const numbers = [
    ["flags", flags],
    ["port-flags", portFlags],
    ["distribution", distribution],
  ] as const;
  const said = numbers.filter(([, value]) => value !== 0).map(([name, value]) => ` ${name} ${value}`);
  return ` to port ${port} of ${endpoints.join(" ")}${said.join("")}${sourceVip === "" ? "" : ` source ${sourceVip}`}`;
}
