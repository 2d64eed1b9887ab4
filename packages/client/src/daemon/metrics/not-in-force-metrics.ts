import type { NotInForce } from "../health/not-in-force.ts";
import type { MetricSet } from "./metric-set.ts";

const HELP =
  "What is not in force: Services that the host refuses, API objects left out (up to 1000), parts of the source lost for a sync period";

/** Register how much is not in force, for one alert. */
export function registerNotInForce(set: MetricSet, read: () => NotInForce): void {
  set.computed("gauge", "turnout_not_in_force", HELP, ["what"], () => {
    const { services, objects, sources } = read();
    return [
      [{ what: "service" }, services],
      [{ what: "object" }, objects],
      [{ what: "source" }, sources],
    ];
  });
}
