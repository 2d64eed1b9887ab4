import { deviceFindings } from "./device-findings.ts";
import { bySeverity, NO_PROXY } from "./finding.ts";
import type { Finding, KnownProxy } from "./finding.ts";
import { parameterFindings } from "./parameter-findings.ts";
import { proxyFindings } from "./proxy-findings.ts";
import { ruleFindings } from "./rule-findings.ts";
import { routeFindings } from "./route-findings.ts";
import type { HostSurvey } from "../readings/survey.ts";

/**
 * Say what of a host is against a service proxy, whichever backend it has, the most serious first. Pure.
 *
 * Edges: what could not be seen is no finding. A host that nothing is wrong with has none but notes.
 */
export function diagnose(survey: HostSurvey, proxy: KnownProxy = NO_PROXY): readonly Finding[] {
  return bySeverity([
    ...proxyFindings(survey),
    ...parameterFindings(survey, proxy),
    ...deviceFindings(survey),
    ...routeFindings(survey, proxy),
    ...ruleFindings(survey, proxy),
  ]);
}
