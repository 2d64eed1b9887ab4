import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createReferenceHost, referenceBackend } from "@turnout/conformance";
import { CallWatch } from "./conformance/conformance-calls.ts";
import { runHistories } from "./conformance/conformance-histories.ts";
import type { BackendReport } from "./conformance/conformance-report.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ToyEnvironment } from "../test-support/toy-environment.ts";

const KIT = fileURLToPath(import.meta.resolve("@turnout/conformance"));

/** The kit's own reference backend, as a third party's module. */
const REFERENCE = `import { createReferenceHost, referenceBackend } from ${JSON.stringify(KIT)};
export { createReferenceHost as createFakeHost };
export default referenceBackend;
`;

/** The same, but it refuses where it should drop. */
const RUDE = `import { createReferenceHost, referenceBackend } from ${JSON.stringify(KIT)};
export { createReferenceHost as createFakeHost };
const refuse = (rules) => rules.map((rule) => (rule.to === "drop" ? { ...rule, to: "reject" } : rule));
export default {
  ...referenceBackend,
  name: "rude",
  parseOptions: (raw) => {
    if (raw.polite !== undefined) throw Object.assign(new Error("[invalid_object] no such option"), { name: "ProxyError", code: "invalid_object" });
    return referenceBackend.parseOptions(raw);
  },
  open: async (...args) => {
    const dataplane = await referenceBackend.open(...args);
    const rude = (backend) => ({
      ...backend,
      render: (row, context) => backend.render({ ...row, destinations: row.destinations.map((one) => ({ ...one, rules: refuse(one.rules) })) }, context),
    });
    return { ...dataplane, family: (family) => rude(dataplane.family(family)) };
  },
};
`;

let env: ToyEnvironment;

beforeEach(async () => {
  env = await ToyEnvironment.create();
  await env.file("reference.mjs", REFERENCE);
  await env.file("rude.mjs", RUDE);
});

afterEach(() => env.remove());

describe("conformance", () => {
  test("a backend that does what it must: a matrix, and exit code 0", async () => {
    const { code, out, err } = await env.run("conformance", "--backend", "./reference.mjs");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^backend reference\n {2}can't do {2}nothing is missing\n/);
    expect(out).toMatch(/^R-22( +\d+){6}$/m);
    expect(out).toMatch(/\nreference conforms: (\d+) of \1 rules passed\n$/);
  });

  test("one that doesn't: findings with what was expected and what came, and exit code 1", async () => {
    const { code, out, err } = await env.run("conformance", "--backend", "./rude.mjs", "--only", "r-27");
    expect(code).toBe(1);
    expect(out).toMatch(/^1 verdict .*R-27.* IPv4 +TCP$/m);
    expect(out).toMatch(/^ {2}expected {2}dropped\n {2}got {7}refused\n {2}because {3}by R-27/m);
    expect(err).toBe("turnout: [tool_failed] the conformance kit has findings: backend rude\n");
  });

  test("-o json is for machines", async () => {
    const { code, out } = await env.run("conformance", "--backend", "./rude.mjs", "--only", "R-27", "-o", "json");
    const [report, ...others] = JSON.parse(out) as BackendReport[];
    expect([code, others, report?.backend, report?.conforms]).toEqual([1, [], "rude", false]);
    expect(report?.variants.unallocatedClusterIP).toBe("drop");
    expect(report?.capabilities.SCTP).toBe(true);
    expect(report?.cells).toContainEqual(expect.objectContaining({ rule: "R-27", family: "IPv6", protocol: "UDP" }));
    expect(report?.findings[0]).toMatchObject({ kind: "verdict", expected: "dropped", got: "refused" });
  });

  test("--only takes a rule or words; --host another module", async () => {
    await env.file("bare.mjs", `export { default } from "./reference.mjs";`);
    const { code, out } = await env.run(
      "conformance",
      "--backend",
      "./bare.mjs",
      "--host",
      "./reference.mjs",
      "--only",
      "a service address nobody has",
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^R-48/m);
    expect(out).not.toMatch(/^R-28/m);
  });

  test("of a package the door ./testing is taken", async () => {
    const home = join("node_modules", "@third", "backend");
    await mkdir(join(env.directory, home), { recursive: true });
    const exports = { ".": "./index.mjs", "./testing": "./fake.mjs" };
    await env.file(join(home, "package.json"), JSON.stringify({ name: "@third/backend", exports }));
    await env.file(join(home, "index.mjs"), REFERENCE.replace(/^export \{.*\n/m, ""));
    await env.file(join(home, "fake.mjs"), REFERENCE.replace(/^export default.*\n/m, ""));
    expect((await env.run("conformance", "--backend", "@third/backend", "--only", "R-48")).code).toBe(0);
    expect((await env.run("conformance", "--backend", "./node_modules/@third/backend/", "--only", "R-48")).code).toBe(0);
  });

  test("a backend that plays the kit by itself may be left out, and says why", async () => {
    const leftOut = REFERENCE.replace(/^export \{.*\n/m, 'export const examine = async () => ({ leftOut: "it needs root" });\n');
    await env.file("in-kernel.mjs", leftOut);
    const { code, out, err } = await env.run("conformance", "--backend", "./in-kernel.mjs");
    expect([code, out]).toEqual([1, "backend reference\n\nreference was left out: it needs root\n"]);
    expect(err).toBe("turnout: [host_unsupported] this machine can't play the conformance kit: backend reference: it needs root\n");
  });

  test("on a terminal histories say how far they are", async () => {
    let said = "";
    const err = (text: string): void => void (said += text);
    const watch = new CallWatch(referenceBackend, createReferenceHost);
    const terminal = { signal: new AbortController().signal, isTerminal: true, err };
    expect(await runHistories(watch, { steps: 600, seed: 3 }, {}, terminal)).toEqual([]);
    expect(said).toBe("\r500 of 600 steps\r600 of 600 steps\n");
  });

  test("histories end when somebody wants them to, and say where to go on", async () => {
    const done = env.run("conformance", "--backend", "./reference.mjs", "--only", "R-48", "--histories", "100000000", "--seed", "7");
    env.stop.abort();
    const { code, err } = await done;
    expect(code).toBe(1);
    expect(err).toMatch(
      /^turnout: \[canceled\] stopped after 500 steps without a finding: backend reference: --seed 8 goes on from there\n$/,
    );
  });

  test("--histories plays random changes too; the seed is said and can be given", async () => {
    const first = await env.run("conformance", "--backend", "./reference.mjs", "--only", "R-48", "--histories", "60");
    expect(first.out).toContain("\n  histories 60 steps, seed 0\n");
    expect(first.code).toBe(0);
    const rude = await env.run(
      "conformance",
      "--backend",
      "./rude.mjs",
      "--only",
      "R-48",
      "--histories",
      "5000",
      "--seed",
      "7",
      "-o",
      "json",
    );
    const [report] = JSON.parse(rude.out) as BackendReport[];
    expect(report?.histories).toEqual({ steps: 5000, seed: 7 });
    expect(report?.findings.map(({ scenario }) => scenario)).toContainEqual(expect.stringMatching(/^history \d+$/));
  });

  test.each([
    ["histories of no number", ["--backend", "./reference.mjs", "--histories", "many"], /"many" is no whole number from 1: --histories/],
    ["a seed of nothing", ["--backend", "./reference.mjs", "--seed", "1"], /nothing it could be the seed of: --seed: pass --histories too/],
    [
      "no fake host",
      ["--backend", "./bare.mjs"],
      /^turnout: \[invalid_object\] it does not export createFakeHost: fake host .\/bare.mjs: pass --host .*\n$/,
    ],
    [
      "a host that isn't there",
      ["--backend", "./reference.mjs", "--host", "./no.mjs"],
      /it can't be loaded .*: fake host .\/no.mjs: .*pass --host with a package/,
    ],
    ["a host without a backend", ["--host", "./reference.mjs"], /it belongs to one backend: --host: pass --backend too/],
    [
      "no such rule",
      ["--backend", "./reference.mjs", "--only", "nonsense"],
      /no scenario is of a rule, or has the words, "nonsense": --only/,
    ],
    ["an option the backend doesn't know", ["--backend", "./rude.mjs", "--backend-option", "polite=true"], /no such option/],
  ])("%s is one line and exit code 2", async (_name, args, message) => {
    await env.file("bare.mjs", `export { default } from "./reference.mjs";`);
    const { code, out, err } = await env.run("conformance", ...args);
    expect(err).toMatch(message);
    expect([code, out]).toEqual([2, ""]);
  });
});
