import type { IPFamily, ObjectWords } from "@turnout/core/backend";
import { placeOf, rulesDiffer, rulesOf } from "@turnout/host/iptables/text";
import { isEqual } from "@turnout/core";
import type { IptablesObject } from "./objects.ts";

/** Rules of which settings decide whether they are there, and for whom: how pods are told, whether everything is masqueraded, where node ports answer. */
const BY_SETTINGS: readonly RegExp[] = [/ cluster IP" .*-j KUBE-MARK-MASQ$/, /--comment "pod traffic for /, /-j KUBE-NODEPORTS$/];

const COMMENT = /-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) ?/;
/** Of a value and its mask; a mask of 0 is none of them. */
const MARK_BIT = /(?<=mark )0x[0-9a-f]+(?:\/(?!0x0\b)0x[0-9a-f]+)?/;

/**
 * Tell whether the rules of a chain are whole, as other settings make them, and not changed by somebody. Pure.
 *
 * Edges: not where rules are only missing: somebody may have deleted them.
 */
function areOfOtherSettings(wanted: string, held: string): boolean {
  const [should, is] = [rulesOf(wanted), rulesOf(held)];
  return !is.every((rule) => should.includes(rule)) && isEqual(withoutSettings(should), withoutSettings(is));
}

/** What rules say whatever the settings: neither comments nor the mark bit. */
function withoutSettings(rules: readonly string[]): readonly string[] {
  return rules
    .filter((rule) => !BY_SETTINGS.some((pattern) => pattern.test(rule)))
    .map((rule) => rule.replace(COMMENT, "").replace(MARK_BIT, "BIT"));
}

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
