import type { Delta, Plan, Put } from "@turnout/core/backend";
import { deletionsOf, placeOf, restoreInput, SectionWriter, sectionWriters, writeRules } from "@turnout/host/iptables/text";
import type { ChainObject, Section } from "@turnout/host/iptables/text";
import { CHAIN_ORDER, GUARD_CHAIN } from "./layout.ts";
import type { CounterObject, IptablesObject, SysctlObject } from "./objects.ts";

/** One call of `iptables-restore`, sections in order; or a kernel parameter to set. */
export type Step =
  | { readonly do: "restore"; readonly sections: readonly Section[] }
  | { readonly do: "delete"; readonly chains: readonly ChainObject[] }
  | { readonly do: "set"; readonly object: SysctlObject }
  | { readonly do: "count"; readonly object: CounterObject };

/**
 * Order a difference: what refuses or drops comes into force before translations change, and goes after them.
 *
 * Shape: one call with up to four sections: filter (what comes), nat, filter (what goes), mangle. So at no time is a packet to a service
 * neither translated nor refused. Within nat: chains first, then what leads to them, then the deletion of those nothing leads to.
 */
export function planDelta(delta: Delta<IptablesObject>): Plan<Step> {
  const coming = sectionWriters(CHAIN_ORDER);
  const going = new SectionWriter("filter", CHAIN_ORDER);
  const isTranslated = translationsOf(delta);
  // What kubelet has, and what the host or the other family may need for something else, is never removed.
  writeRules(delta, { coming, going: { ...coming, filter: going } }, (rule) => rule.key.startsWith("filter ") && !isTranslated(rule));
  const parameters = delta.put.flatMap(({ after }) => (after.kind === "sysctl" ? [after] : []));
  const counters = delta.put.flatMap(({ after }): readonly Step[] => (after.kind === "counter" ? [{ do: "count", object: after }] : []));
  // Parameters are set behind the guard and before the rules that need them, at the price of another call. It has the guard alone: what drops and what
  // translates stay in one call, so that hardly any time passes between them.
  const guard = parameters.length === 0 ? coming.filter : new SectionWriter("filter", CHAIN_ORDER);
  writeGuard(delta.put, guard);
  const first = guard === coming.filter ? [] : guard.finish();
  const rest = [coming.filter, coming.nat, going, coming.mangle].flatMap((writer) => writer.finish());
  const set = parameters.map((object): Step => ({ do: "set", object }));
  const rules = [...restoreSteps(first), ...set, ...restoreSteps(rest)];
  // Rules that name a counter are refused where there is none.
  const steps = [...counters, ...rules];
  const idle = delta.lingering.flatMap(({ object }) => (object.kind === "chain" ? [object] : []));
  return { steps: idle.length === 0 ? steps : [...steps, { do: "delete", chains: idle }] };
}

/** The plan as text a person (and `iptables-restore --noflush`) can read. */
export function explainPlan({ steps }: Plan<Step>): string {
  const texts = steps.map((step) => {
    if (step.do === "restore") return restoreInput(step.sections);
    if (step.do === "count") return `# nfacct add ${step.object.key}\n`;
    if (step.do === "set") return `# sysctl -w ${step.object.key}=${step.object.value}\n`;
    return restoreInput(deletionsOf(step.chains));
  });
  return texts.length === 0 ? "# nothing to do\n" : texts.join("");
}

function restoreSteps(sections: readonly Section[]): readonly Step[] {
  return sections.length === 0 ? [] : [{ do: "restore", sections }];
}

/**
 * Tell whether the translation of what a filter rule is about changes as well: only then has the rule to wait for it. The others need not wait,
 * and are in step with the rest of the change.
 *
 * Edges: an external destination is led to KUBE-EXT also where only pods and the host get further than that, and refused to all others. When
 * the others get further, too, nothing but KUBE-EXT says so: while one changes all refusals of external destinations wait.
 */
function translationsOf({ put, remove }: Delta<IptablesObject>): (rule: IptablesObject) => boolean {
  const changing = new Set<string>();
  for (const object of [...remove, ...put.map(({ after }) => after)]) {
    if (object.kind === "rule" && object.key.startsWith("nat ")) changing.add(destinationOf(object.key));
  }
  const isPolicyChanging = put.some(({ after }) => after.kind === "chain" && after.key.startsWith("nat KUBE-EXT-"));
  return ({ key }) => changing.has(destinationOf(key)) || (isPolicyChanging && key.startsWith("filter KUBE-EXTERNAL-SERVICES "));
}

/** What a dispatch rule is about: address (none for a node port), protocol and port. */
function destinationOf(key: string): string {
  const [, address = "", protocol = ""] = /^\w+ \S+ (?:-d (\S+) )?-p (\w+) /.exec(key) ?? [];
  return `${address} ${protocol} ${/ --dport (\d+) -j [^"]*$/.exec(key)?.[1] ?? ""}`;
}

/** What kubelet has as well is only added, each piece by itself. */
function writeGuard(puts: readonly Put<IptablesObject>[], writer: SectionWriter): void {
  const keys = puts.flatMap(({ after }) => (after.kind === "guard" ? [after.key] : []));
  // -N, not a chain line: that would empty the chain if kubelet was quicker.
  if (keys.includes(`filter ${GUARD_CHAIN}`)) writer.createChain(GUARD_CHAIN);
  for (const key of keys) if (placeOf({ key }).rule !== "") writer.insertRule(key);
}
