import type { IPFamily } from "@turnout/core";
import { deviceFindings } from "./device-findings.ts";
import { bySeverity } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { parameterFindings } from "./parameter-findings.ts";
import { proxyFindings } from "./proxy-findings.ts";
import { ruleFindings } from "./rule-findings.ts";
import type { HostSurvey } from "./survey.ts";

/**
 * Say what of a host is against a service proxy, whichever backend it has, the most serious first. Pure.
 *
 * Shape: `served` are families of which a proxy is known to have Services in force.
 * Edges: what could not be seen is no finding. A host that nothing is wrong with has none but notes.
 */
export function diagnose(survey: HostSurvey, served: ReadonlySet<IPFamily> = new Set()): readonly Finding[] {
  return bySeverity([...proxyFindings(survey), ...parameterFindings(survey, served), ...deviceFindings(survey), ...ruleFindings(survey)]);
}
