import { isEqual } from "@turnout/core";
import { rulesOf } from "@turnout/host/iptables/text";

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
export function areOfOtherSettings(wanted: string, held: string): boolean {
  const [should, is] = [rulesOf(wanted), rulesOf(held)];
  return !is.every((rule) => should.includes(rule)) && isEqual(withoutSettings(should), withoutSettings(is));
}

/** What rules say whatever the settings: neither comments nor the mark bit. */
function withoutSettings(rules: readonly string[]): readonly string[] {
  return rules
    .filter((rule) => !BY_SETTINGS.some((pattern) => pattern.test(rule)))
    .map((rule) => rule.replace(COMMENT, "").replace(MARK_BIT, "BIT"));
}
