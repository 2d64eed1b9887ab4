import { expect, test } from "vitest";
import { insightSettings } from "./insight-flags.ts";

test("nothing is counted and no page is served unless that is asked for", () => {
  expect(insightSettings({})).toEqual({ serviceMetricsMax: 0, hasWebPage: false });
  expect(insightSettings({ "service-metrics": "200", "web-page": true })).toEqual({ serviceMetricsMax: 200, hasWebPage: true });
  expect(insightSettings({ "service-metrics": "0", "web-page": "false" })).toEqual({ serviceMetricsMax: 0, hasWebPage: false });
});

test.each([
  [{ "service-metrics": "-1" }, "-1 must be 0 to 10000: --service-metrics"],
  [{ "service-metrics": "10001" }, "10001 must be 0 to 10000: --service-metrics"],
  [{ "service-metrics": "many" }, "many"],
  [{ "web-page": "maybe" }, "--web-page"],
])("%j is refused", (flags, message) => {
  expect(() => insightSettings(flags)).toThrow(message);
});
