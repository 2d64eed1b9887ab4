import type { Delta, Plan, Put } from "@turnout/core/backend";
import { rangesOf } from "./objects.ts";
import type { EbpfObject, ListObject, RangesObject } from "./objects.ts";

/**
 * One step of a plan.
 * - `write`: make or replace the object. Of objects in maps each element takes effect in one step. `surplus`: elements of what is there that the object hasn't.
 * - `delete`: delete it.
 * - `retire`: an unwanted list, or unwanted source ranges. Programs that run just now may still read it: it lingers for {@link RETIRED_MS}, and is deleted
 *   then.
 */
export type Step =
  | { readonly verb: "write"; readonly object: EbpfObject; readonly surplus?: ListObject | RangesObject }
  | { readonly verb: "delete"; readonly object: EbpfObject }
  | { readonly verb: "retire"; readonly object: ListObject | RangesObject };

/** How long an unwanted list stays; a program takes microseconds. */
export const RETIRED_MS = 1000;

type Kind = EbpfObject["kind"];

/** What is written first: what services and node ports rest on. */
const BEFORE_SERVICES: readonly Kind[] = ["settings", "opt-out", "pod-range", "primary", "counter", "list", "ranges"];

/**
 * Order a difference: what can be none of ours goes, then what services name, then services; then programs come to their hooks, and then what nobody
 * names any more goes. Last it is said that the family is served. Pure.
 *
 * Shape: each service changes with its one element. What isn't written yet is not asked for: programs of these maps are at no hook before.
 */
export function planDelta({ put, remove, lingering }: Delta<EbpfObject>): Plan<Step> {
  const written = (kinds: readonly Kind[]): readonly Step[] =>
    kinds.flatMap((kind) => put.filter(({ after }) => after.kind === kind).map(writeStep));
  const deleted = (kinds: readonly Kind[]): readonly Step[] =>
    kinds.flatMap((kind) => remove.filter((object) => object.kind === kind).map((object): Step => ({ verb: "delete", object })));
  return {
    steps: [
      ...deleted(["stray"]),
      ...written([...BEFORE_SERVICES, "service", "node-address", "filled", "table", "link", "device"]),
      // Settings, marks and links are never unwanted while this backend serves.
      ...deleted(["device", "table", "node-address", "service", "counter", "primary", "pod-range", "opt-out"]),
      ...remove.flatMap((object): readonly Step[] =>
        object.kind === "list" || object.kind === "ranges" ? [{ verb: "retire", object }] : [],
      ),
      ...lingering.map(({ object }): Step => ({ verb: "delete", object })),
      ...deleted(["folder"]),
      // It fails as long as something that it takes is missing; nothing may have to wait for it.
      ...written(["serving"]),
    ],
  };
}

/** A list that another hand made longer is cut, and what it added to ranges is removed. */
function writeStep({ before, after }: Put<EbpfObject>): Step {
  if (before?.kind === "ranges" && after.kind === "ranges") {
    const value = before.value.filter((cidr) => !after.value.includes(cidr));
    if (value.length > 0) return { verb: "write", object: after, surplus: { ...before, value } };
  }
  if (before?.kind !== "list" || after.kind !== "list" || before.value.length <= after.value.length)
    return { verb: "write", object: after };
  return {
    verb: "write",
    object: after,
    surplus: { ...before, value: before.value.map((text, at) => (at < after.value.length ? "" : text)) },
  };
}

/** The plan as text, a line for each step. */
export function explainPlan({ steps }: Plan<Step>): string {
  return steps.length === 0 ? "# nothing to do\n" : `${steps.map(explainStep).join("\n")}\n`;
}

function explainStep(step: Step): string {
  const { verb, object } = step;
  const name = `${verb} ${object.kind} ${object.key}`;
  if (verb !== "write") return name;
  switch (object.kind) {
    case "service": {
      const { pod, host, outside, affinitySeconds, podsPass, hostPass, row } = object.value;
      const choices = Object.entries({ pod, host, outside }).map(([asker, { verdict, list, count, masquerade }]) => {
        const what = verdict === "serve" ? `${count} of ${list}${masquerade ? " masquerade" : ""}` : verdict;
        return `${asker}: ${what}`;
      });
      const affinity = affinitySeconds === 0 ? [] : [`affinity ${affinitySeconds} s`];
      const ranges = rangesOf(object).map((key) => `only from ${key}`);
      const passing = [...(podsPass ? ["pods' sockets pass"] : []), ...(hostPass ? ["the host's sockets pass"] : [])];
      return `${name}  ${[`row ${row}`, ...choices, ...ranges, ...affinity, ...passing].join(", ")}`;
    }
    case "list":
    case "ranges":
      return `${name}  ${object.value.join(" ")}`;
    case "node-address":
      return `${name}  ${object.value.hasNodePorts ? "node-ports" : "own"}${object.value.hasListeners ? ", listeners first" : ""}`;
    case "settings":
    case "primary":
      return `${name}  ${object.value}`;
    case "table":
      return name;
    case "device":
      return `${name}  ${object.value.programs}/${object.value.program}`;
    case "link":
      return `${name}  ${object.value.programs} at cgroup ${object.value.cgroup}`;
    default:
      return name;
  }
}
