import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { KNOWN_BACKENDS } from "./registry.ts";
import { backendPage } from "./test-support/backend-page.ts";
import { readPromql } from "./test-support/promql.ts";
import { readServed, type ServedMetrics } from "./test-support/served-metrics.ts";
import { freePort, CART, TOY_BACKEND, ToyEnvironment } from "./test-support/toy-environment.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[] };
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface RuleTest {
  readonly input_series: readonly { readonly series: string }[];
  readonly promql_expr_test: readonly { readonly exp_samples: readonly { readonly labels: string }[] }[];
}

const repository = join(import.meta.dirname, "../../..");
const file = (path: string): string => readFileSync(join(repository, path), "utf8");
const DASHBOARD = JSON.parse(file("deploy/monitoring/turnout-dashboard.json")) as Dashboard;
const GROUPS = (parse(file("deploy/monitoring/turnout-alerts.yaml")) as { groups: { name: string; rules: Alert[] }[] }).groups;
const ALERTS = GROUPS.flatMap(({ rules }) => rules);
const RULE_TESTS = (parse(file("deploy/monitoring/turnout-alerts.test.yaml")) as { tests: RuleTest[] }).tests;

/** Labels that Prometheus gives each series of a target. */
const OF_TARGETS = ["job", "instance"];

/** What Prometheus makes itself. */
const OF_PROMETHEUS: readonly (readonly [string, ReadonlySet<string>])[] = [
  ["up", new Set()],
  ["ALERTS", new Set(["alertname", "alertstate"])],
];

let served: ServedMetrics;
const environments: ToyEnvironment[] = [];

const get = async (port: number, path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();

async function newEnvironment(): Promise<ToyEnvironment> {
  const env = await ToyEnvironment.create();
  environments.push(env);
  await env.file("services.yaml", CART);
  return env;
}

/** Wait until a command has logged this. */
async function says(env: ToyEnvironment, text: string): Promise<void> {
  await vi.waitFor(() => expect(env.err).toContain(text), 60_000);
}

/** Scrape `turnout run`, which has been asked for its health. */
async function runPage(): Promise<string> {
  const env = await newEnvironment();
  await env.file("toy.mjs", TOY_BACKEND);
  const [metrics, healthz] = [await freePort(), await freePort()];
  const addresses = ["--metrics-bind-address", `127.0.0.1:${metrics}`, "--healthz-bind-address", `127.0.0.1:${healthz}`];
  const ports = [...addresses, "--service-metrics", "5"];
  const running = env.run("run", "--backend", "./toy.mjs", "--source", `file:${join(env.directory, "services.yaml")}`, ...ports);
  await says(env, "serving metrics");
  await says(env, "serving healthz");
  for (const path of ["/healthz", "/livez"]) await get(healthz, path);
  // Before the first scrape: what is counted is read at most each five seconds.
  await vi.waitFor(() => expect(env.err.split("first sync done")).toHaveLength(3), 60_000);
  const page = await get(metrics, "/metrics");
  env.stop.abort();
  await running;
  return page;
}

/** Scrape `turnout serve`, which has refused a client. */
async function servePage(): Promise<string> {
  const env = await newEnvironment();
  const client = await newEnvironment();
  const metrics = await freePort();
  const target = `unix://${join(env.directory, "node.sock")}`;
  const flags = ["--node-name", "node1", "--listen", target, "--metrics-bind-address", `127.0.0.1:${metrics}`];
  const serving = env.run("serve", "--source", `file:${join(env.directory, "services.yaml")}`, ...flags);
  await says(env, "serving metrics");
  await says(env, "the source is complete");
  await client.run("print", "--source", `api:${target}`, "--node-name", "node2");
  const page = await get(metrics, "/metrics");
  env.stop.abort();
  await serving;
  return page;
}

beforeAll(async () => {
  const backends = await Promise.all(KNOWN_BACKENDS.map(({ name }) => backendPage(name)));
  served = new Map([...readServed([...backends, await runPage(), await servePage()]), ...OF_PROMETHEUS]);
});

afterAll(() => Promise.all(environments.map((env) => env.remove())));

/** What an expression asks for that is not served. */
function lacks(expression: string): readonly string[] {
  const { selected, grouping } = readPromql(expression);
  const labelsOf = (metric: string): readonly string[] => [...OF_TARGETS, ...(served.get(metric) ?? [])];
  const known = new Set(selected.flatMap(({ metric }) => labelsOf(metric)));
  return [
    ...selected.map(({ metric }) => metric).filter((metric) => !served.has(metric)),
    ...selected.flatMap(({ metric, labels }) => labels.filter((label) => !labelsOf(metric).includes(label)).map((l) => `${metric}{${l}}`)),
    ...grouping.filter((label) => !known.has(label)),
  ];
}

/** Put in what Grafana puts in for its own variables. */
const filledIn = (expression: string): string => expression.replaceAll("$__rate_interval", "5m");

/** The anchors of a page's headings, as Markdown viewers make them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

describe("what is said to be lacking", () => {
  test.each([
    ["sum by (instance) (rate(turnout_objects_put_total[5m]))", []],
    ["turnout_objects_put", ["turnout_objects_put"]],
    ['turnout_objects{family="IPv4"}', ["turnout_objects{family}"]],
    ["sum by (family) (turnout_objects)", ["family"]],
    ["turnout_objects and on (part) turnout_source_up", []],
  ])("%s", (expression, missing) => expect(lacks(expression)).toEqual(missing));

  test("what is no PromQL is refused", () => expect(() => lacks("sum(turnout_objects")).toThrow("no PromQL"));
});

describe("the alerts", () => {
  test("have names of their own", () => expect(new Set(ALERTS.map(({ alert }) => alert)).size).toBe(ALERTS.length));

  test.each(ALERTS)("$alert asks for what is served, and says what to do", ({ alert, expr, for: duration, labels, annotations }) => {
    expect(lacks(expr)).toEqual([]);
    expect(duration).toMatch(/^\d+m$/);
    expect(labels["severity"]).toMatch(/^(critical|warning|info)$/);
    expect([annotations["summary"], annotations["description"]].every((text) => text?.endsWith("."))).toBe(true);
    expect(annotations["runbook_url"]).toBe(`docs/operations.md#${alert.toLowerCase()}`);
    expect([...anchorsOf(file("docs/operations.md"))]).toContain(alert.toLowerCase());
    const used = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    const { selected } = readPromql(expr);
    const known = [...OF_TARGETS, ...selected.flatMap(({ metric }) => [...(served.get(metric) ?? [])])];
    expect(used.filter((label) => label === undefined || !known.includes(label))).toEqual([]);
  });

  test("each is expected to fire in a case of promtool's, made of what is served", () => {
    const fired = RULE_TESTS.flatMap((one) =>
      one.promql_expr_test.flatMap(({ exp_samples: samples }) => samples.map(({ labels }) => labels)),
    );
    expect(ALERTS.map(({ alert }) => alert).filter((alert) => !fired.some((labels) => labels.includes(`"${alert}"`)))).toEqual([]);
    for (const { series } of RULE_TESTS.flatMap((one) => one.input_series)) expect([series, lacks(series)]).toEqual([series, []]);
  });
});

describe("the dashboard", () => {
  const drawn = DASHBOARD.panels.filter(({ type }) => type !== "row");

  test("is one that Grafana takes", () => {
    expect([DASHBOARD.uid, DASHBOARD.schemaVersion >= 36]).toEqual(["turnout", true]);
    expect(new Set(DASHBOARD.panels.map(({ id }) => id)).size).toBe(DASHBOARD.panels.length);
    expect(DASHBOARD.templating.list[0]).toMatchObject({ name: "datasource", type: "datasource", query: "prometheus" });
    for (const { targets = [] } of drawn) expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    expect(drawn.map(({ datasource }) => datasource?.uid).filter((uid) => !/^\$\{datasource\}$/.test(uid ?? ""))).toEqual([]);
  });

  test("has no panel over another or beyond the edge", () => {
    const cells = DASHBOARD.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(DASHBOARD.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });

  test.each(drawn)("$title asks for what is served, and shows labels that are there", ({ targets = [] }) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { expr, legendFormat } of targets) {
      expect([expr, lacks(filledIn(expr))]).toEqual([expr, []]);
      const { selected, grouping } = readPromql(filledIn(expr));
      const left = grouping.length > 0 ? grouping : selected.flatMap(({ metric }) => [...OF_TARGETS, ...(served.get(metric) ?? [])]);
      const shown = [...legendFormat.matchAll(/{{(\w+)}}/g)].map(([, label = ""]) => label);
      expect([expr, shown.filter((label) => !left.includes(label))]).toEqual([expr, []]);
    }
  });

  test("its variables are filled from what is served, and are all there are", () => {
    const { list } = DASHBOARD.templating;
    for (const { definition } of list.filter(({ type }) => type === "query")) {
      const [, series = "", label = ""] = /^label_values\((.+), (\w+)\)$/.exec(definition ?? "") ?? [];
      expect([lacks(series), OF_TARGETS]).toEqual([[], expect.arrayContaining([label])]);
    }
    const used = [...JSON.stringify(drawn).matchAll(/\$\{?(\w+)/g)].map(([, name = ""]) => name);
    expect(used.filter((name) => name !== "__rate_interval" && !list.some((one) => one.name === name))).toEqual([]);
  });
});
