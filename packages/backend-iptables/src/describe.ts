import type { IPFamily, ObjectWords } from "@turnout/core/backend";
import { placeOf, rulesDiffer, rulesOf } from "@turnout/host/iptables/text";
import type { IptablesObject } from "./objects.ts";
import { areOfOtherSettings } from "./other-settings.ts";

/** Call an object by iptables' words, and say how the chain that the kernel holds differs. Pure. */
export function describeObject(object: IptablesObject, family: IPFamily, held?: IptablesObject): ObjectWords {
  const tool = family === "IPv4" ? "iptables" : "ip6tables";
  const { kind, key } = object;
  if (kind === "sysctl") return { what: `kernel parameter ${key}`, show: `sysctl ${key}` };
  if (kind === "counter") return { what: `packet counter ${key}`, show: `nfacct get ${key}`, isOfOtherSettings: true };
  const { table, chain, rule } = placeOf(object);
  const show = `${tool} -t ${table} -S ${chain}`;
  const where = `chain ${chain} of table ${table}`;
  if (kind === "jumps") return { what: `the jumps of ${where} to ${targetsOf(object.value)}`, show };
  if (kind === "rule" || (kind === "guard" && rule !== "")) return { what: `the rule "${rule}" in ${where}`, show };
  if ((kind !== "chain" && kind !== "shared") || held?.kind !== kind) return { what: where, show };
  if (areOfOtherSettings(object.value, held.value)) return { what: where, show, isOfOtherSettings: true };
  return { what: where, show, differs: rulesDiffer(where, object, held) };
}

function targetsOf(jumps: string): string {
  return [...new Set(rulesOf(jumps).map((rule) => rule.split(" ").at(-1)))].join(", ");
}
