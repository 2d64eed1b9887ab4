import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readCommand } from "./release/options.ts";

/** What actionlint can't know: what a job of ours needs before it can do its work. */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SET_UP = "./.github/actions/set-up";
const TESTS = "./.github/workflows/ci.yml";
/** What compiles BPF programs, or plays tests: without the host's tools it fails, or leaves half of it out. */
const NEEDS_TOOLS = /^(?:npm test|\.ci\/run|npm run (?:image|site|release:dry-run|release -- pack)\b)/;

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly needs?: string | readonly string[];
  readonly container?: string | { readonly image: string; readonly options?: string };
  readonly uses?: string;
  readonly steps?: readonly Step[];
}
interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const paths = globSync(".github/workflows/*.yml", { cwd: ROOT }).toSorted();
const workflows = new Map(paths.map((path) => [path, parse(read(path)) as Workflow]));
const jobs = [...workflows].flatMap(([path, workflow]) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${path} ${name}`, workflow, job, steps: job.steps ?? [] })),
);
const commandsOf = ({ run = "" }: Step): readonly string[] => run.split("\n").map((line) => line.trim());
const runs = (steps: readonly Step[], command: RegExp): boolean => steps.flatMap(commandsOf).some((line) => command.test(line));

describe("the workflows", () => {
  it.each([...paths, `${SET_UP}/action.yml`])("%s uses exact commits of others' actions, and says which version each is", (path) => {
    const uses = [...read(path).matchAll(/uses: (?<what>.*)$/gm)].map(({ groups }) => groups?.["what"] ?? "");
    expect(uses.filter((what) => !what.startsWith("./") && !/^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(what))).toEqual([]);
    expect(uses.filter((what) => what.startsWith("./") && !existsSync(join(ROOT, what)))).toEqual([]);
  });

  const working = jobs.filter(({ steps }) => runs(steps, NEEDS_TOOLS));

  it("are more than a few", () => {
    expect(working.map(({ name }) => name.replace(/^.*\//, ""))).toEqual([
      "ci.yml test",
      "kind.yml images",
      "nightly.yml nightly",
      "release.yml next",
      "site.yml site",
    ]);
  });

  it.each(working)("$name has the host's tools before it packs or tests, as root on Debian 12", ({ job, steps }) => {
    const image = typeof job.container === "string" ? job.container : job.container?.image;
    expect(image).toMatch(/^node:24-bookworm$/);
    const [checkout, setUp, work] = [/^actions\/checkout@/, /^\.\/\.github\/actions\/set-up$/]
      .map((uses) => steps.findIndex((step) => uses.test(step.uses ?? "")))
      .concat(steps.findIndex((step) => runs([step], NEEDS_TOOLS))) as [number, number, number];
    expect([checkout, setUp > checkout, work > setUp]).toEqual([0, true, true]);
  });

  it.each(working.filter(({ steps }) => runs(steps, /^(?:\.ci\/run|npm run release:dry-run)/)))(
    "$name may make network namespaces",
    ({ job }) => {
      expect(typeof job.container === "object" && job.container.options).toMatch(/^--privileged\b/);
    },
  );

  it.each(jobs)("$name runs only scripts that there are", ({ steps }) => {
    const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const lines = steps.flatMap(commandsOf);
    const named = lines.flatMap((line) => [...line.matchAll(/npm run ([\w:-]+)/g)].map(([, name = ""]) => name));
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    const files = lines.flatMap((line) => [...line.matchAll(/(?:^|sh )((?:\.ci|scripts|e2e)\/\S+)/g)].map(([, file = ""]) => file));
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });
});

describe("tests", () => {
  it("are played for pull requests and main, and for those who ask", () => {
    const { on, jobs: own } = workflows.get(TESTS.slice(2)) as Workflow;
    expect(on).toMatchObject({ pull_request: null, push: { branches: ["main"] }, workflow_call: null });
    expect(runs(own["test"]?.steps ?? [], /^\.ci\/run$/)).toBe(true);
  });

  it("look at the workflows by a pinned actionlint", () => {
    const { jobs: own } = workflows.get(TESTS.slice(2)) as Workflow;
    expect(runs(own["workflows"]?.steps ?? [], /^go run github\.com\/rhysd\/actionlint\/cmd\/actionlint@v\d+\.\d+\.\d+$/)).toBe(true);
  });
});

describe("what is published", () => {
  const releasing = jobs.filter(({ steps }) => runs(steps, /^npm run release -- /));
  const publishing = releasing.filter(({ steps }) => runs(steps, /^npm run release -- publish/));

  it.each(publishing)("$name was tested before", ({ job, workflow }) => {
    const needed = [job.needs ?? []].flat().map((name) => workflow.jobs[name]?.uses);
    expect(needed).toContain(TESTS);
  });

  it.each(releasing)("$name says what the command takes, and as whom", ({ steps }) => {
    const registries = steps.map((step) => step.with?.["registry-url"]).filter((url) => url !== undefined);
    expect(registries).toEqual([expect.stringContaining("vars.NPM_REGISTRY")]);
    const said = steps.flatMap((step) =>
      commandsOf(step).flatMap((line) =>
        [...line.matchAll(/npm run release -- (.*)/g)].map(([, words = ""]) => ({
          command: readCommand(words.replace(/\$\{\{.*\}\}/, "--allow-older").split(" ")),
          env: step.env ?? {},
        })),
      ),
    );
    const writing = said.filter(({ command: { action } }) => action === "publish" || action === "promote");
    expect(writing.filter(({ env }) => !String(env["NODE_AUTH_TOKEN"]).includes("secrets.NPM_TOKEN"))).toEqual([]);
    expect(writing.filter(({ command, env }) => command.action === "publish" && env["NPM_CONFIG_PROVENANCE"] !== "true")).toEqual([]);
    expect(writing).toHaveLength(1);
  });

  it("are all channels", () => {
    expect(publishing.map(({ name }) => name)).toEqual([".github/workflows/nightly.yml nightly", ".github/workflows/release.yml next"]);
    expect(releasing).toHaveLength(3);
  });
});
