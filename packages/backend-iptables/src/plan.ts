import type { Delta, Plan, Put } from "@turnout/core/backend";
import { deletionsOf, placeOf, restoreInput, rulesOf, SectionWriter } from "@turnout/host/iptables/text";
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
  const coming = new SectionWriter("filter", CHAIN_ORDER);
  const going = new SectionWriter("filter", CHAIN_ORDER);
  const nat = new SectionWriter("nat", CHAIN_ORDER);
  const mangle = new SectionWriter("mangle", CHAIN_ORDER);
  const writers = { filter: coming, nat, mangle };
  const leaving = { filter: going, nat, mangle };
  const parameters: SysctlObject[] = [];
  const counters: Step[] = [];
  const fresh = new Set(delta.put.flatMap(({ before, after }) => (after.kind === "shared" && before === undefined ? [after.key] : [])));
  const isTranslated = translationsOf(delta);
  const gone = new Set(delta.remove.flatMap((object) => (object.kind === "shared" ? [object.key] : [])));
  for (const object of delta.remove) {
    // Kubelet's, and what the host or the other family may need for something else, stay.
    if (object.kind === "guard" || object.kind === "sysctl" || object.kind === "counter") continue;
    const { table, chain } = placeOf(object);
    if (object.kind === "chain" || object.kind === "shared") leaving[table].dropChain({ ...object, kind: "chain" });
    else if (object.kind === "jumps") leaving[table].writeJumps(chain, [], rulesOf(object.value));
    else if (!gone.has(`${table} ${chain}`))
      (table === "filter" && !isTranslated(object) ? coming : leaving[table]).deleteRule(object.key, object.value);
  }
  for (const { before, after } of delta.put) {
    if (after.kind === "sysctl") parameters.push(after);
    else if (after.kind === "counter") counters.push({ do: "count", object: after });
    else if (after.kind === "chain") writers[placeOf(after).table].writeChain(after, textOf(before));
    else if (after.kind === "shared") writers[placeOf(after).table].writeShared(after.key, after.value, textOf(before));
    else if (after.kind === "jumps")
      writers[placeOf(after).table].writeJumps(placeOf(after).chain, rulesOf(after.value), rulesOf(textOf(before) ?? ""));
    else if (after.kind === "rule") writeRule(after.key, before, writers[placeOf(after).table], fresh);
  }
  // Parameters are set behind the guard and before the rules that need them, at the price of another call. It has the guard alone: what drops and what
  // translates stay in one call, so that hardly any time passes between them.
  const guard = parameters.length === 0 ? coming : new SectionWriter("filter", CHAIN_ORDER);
  writeGuard(delta.put, guard);
  const first = guard === coming ? [] : guard.finish();
  const rest = [coming, nat, going, mangle].flatMap((writer) => writer.finish());
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

function textOf(object: IptablesObject | undefined): string | undefined {
  return typeof object?.value === "string" ? object.value : undefined;
}

function writeRule(key: string, before: IptablesObject | undefined, writer: SectionWriter, fresh: ReadonlySet<string>): void {
  const { table, chain, rule } = placeOf({ key });
  if (typeof before?.value === "number") writer.deleteRule(key, before.value - 1);
  else if (fresh.has(`${table} ${chain}`)) writer.appendFirst(chain, rule);
  else writer.insertRule(key);
}

/** What kubelet has as well is only added, each piece by itself. */
function writeGuard(puts: readonly Put<IptablesObject>[], writer: SectionWriter): void {
  const keys = puts.flatMap(({ after }) => (after.kind === "guard" ? [after.key] : []));
  // -N, not a chain line: that would empty the chain if kubelet was quicker.
  if (keys.includes(`filter ${GUARD_CHAIN}`)) writer.createChain(GUARD_CHAIN);
  for (const key of keys) if (placeOf({ key }).rule !== "") writer.insertRule(key);
}
