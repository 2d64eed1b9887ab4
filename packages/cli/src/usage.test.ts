import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CART, ToyEnvironment } from "./test-support/toy-environment.ts";

let env: ToyEnvironment;

beforeEach(async () => {
  env = await ToyEnvironment.create();
  await env.file("cart.yaml", CART);
});

afterEach(() => env.remove());

function source(): string {
  return `file:${join(env.directory, "cart.yaml")}`;
}

describe("usage", () => {
  test.each([
    ["an unknown command", ["frobnicate"], /^turnout: unknown command 'frobnicate': see turnout --help\n$/],
    ["an unknown option", ["print", "--bogus"], /^turnout: unknown option '--bogus': see turnout print --help\n$/],
    ["a word too many", ["print", "extra"], /^turnout: too many arguments .* got 1: extra: see turnout print --help\n$/],
    ["a missing value", ["print", "--source"], /^turnout: option '--source <source>' argument missing.*\n$/],
    ["a bad source", ["print", "--source", "ftp:x"], /^turnout: \[invalid_object\] --source is not understood.*\n$/],
    ["a bad family", ["print", "--family", "5"], /^turnout: \[invalid_object\] "5" is no family: --family: use IPv4, IPv6 or both\n$/],
    ["a bad timeout", ["print", "--source", "file:.", "--timeout", "0"], /must be longer than 0: --timeout/],
    [
      "a bad flag value",
      ["run", "--iptables-masquerade-bit", "32"],
      /^turnout: \[invalid_object\] 32 must be 0 to 31: --iptables-masquerade-bit\n$/,
    ],
    [
      "a configuration file that is not there",
      ["run", "--config", "/nonexistent.yaml"],
      /^turnout: \[invalid_object\] the configuration file can't be read.*\/nonexistent.yaml\n$/,
    ],
    [
      "a backend that is not there",
      ["run", "--backend", "nonesuch"],
      /^turnout: \[invalid_object\] it can't be loaded.*backend nonesuch: use nft.*, auto.*\n$/,
    ],
    ["a bad backend option", ["cleanup", "--backend-option", "x"], /"x" is not name=value: --backend-option/],
    ["--all beside --backend", ["cleanup", "--all", "--backend", "nft"], /exclude each other/],
    [
      "a bad level",
      ["print", "--source", "file:.", "-v", "much"],
      /^turnout: \[invalid_object\] expected a level like 4, found "much": -v: pass a number, or none\n$/,
    ],
  ])("%s is one line and exit code 2", async (_name, args, expected) => {
    const { code, out, err } = await env.run(...args);
    expect(err).toMatch(expected);
    expect([code, out]).toEqual([2, ""]);
  });

  test("run takes kube-proxy's spellings of -v", async () => {
    const file = join(env.directory, "written.yaml");
    for (const level of [["-v", "4"], ["-v=4"], ["-v4"], ["--v=4"], ["--v", "4"]]) {
      expect(await env.run("run", ...level, "--write-config-to", file)).toEqual({ code: 0, out: "", err: "" });
      expect(await readFile(file, "utf8")).toMatch(/^ {2}verbosity: 4$/m);
    }
  });

  test.each(["--masquerade-all", "--cleanup", "--init-only", "--web-page", "--version"])("%s takes no word behind it", async (name) => {
    const { code, err } = await env.run("run", name, "false");
    expect([code, err]).toEqual([2, expect.stringContaining("too many arguments")]);
  });

  test("run --version=raw says more, and starts nothing", async () => {
    expect(await env.run("run", "--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
    expect(await env.run("run", "--version=raw")).toEqual({ code: 0, out: '{"version":"1.2.3","platform":"linux"}\n', err: "" });
  });

  test("run knows every flag of kube-proxy, and none of the former ones", async () => {
    const surface = JSON.parse(await readFile(new URL("../../client/test/kube-proxy/surface.json", import.meta.url), "utf8")) as {
      readonly flags: readonly { readonly name: string }[];
    };
    const missing: string[] = [];
    for (const { name } of surface.flags.filter((flag) => flag.name !== "help")) {
      const { err } = await env.run("run", `--${name}=1`, "--write-config-to", join(env.directory, "written.yaml"));
      if (err.includes("unknown option")) missing.push(name);
    }
    expect(missing).toEqual([]);
    expect((await env.run("run", "--proxy-port-range=1-2")).err).toContain("unknown option '--proxy-port-range");
  });

  test("a file that is named by nothing is no file, and one that can't be written is one line", async () => {
    const path = join(env.directory, "written.yaml");
    expect(await env.run("run", "--config=", "--write-config-to", path)).toEqual({ code: 0, out: "", err: "" });
    expect(await readFile(path, "utf8")).toContain('format: ""');
    const { code, err } = await env.run("run", "--write-config-to", join(env.directory, "nowhere/written.yaml"));
    expect([code, err]).toEqual([1, expect.stringMatching(/^turnout: \[tool_failed\] the configuration can't be written \(ENOENT.*\n$/)]);
    expect((await env.run("run", "--config", path, "--write-config-to", path)).err).toBe("");
  });

  test("run --cleanup checks the configuration before it removes anything", async () => {
    expect((await env.run("run", "--cleanup", "--proxy-mode=userspace")).code).toBe(2);
    expect((await env.run("run", "--cleanup=maybe")).err).toBe('turnout: [invalid_object] "maybe" is neither true nor false: --cleanup\n');
  });

  test("no command shows the help and is exit code 2", async () => {
    const { code, err } = await env.run();
    expect(code).toBe(2);
    expect(err).toContain("Usage: turnout");
  });

  test("underscores in a flag's name are dashes, as in kube-proxy, and stay what they are in its value", async () => {
    const { code, out } = await env.run(
      "print",
      "--source",
      source(),
      "--family=4",
      "--node_name=my_node",
      "--cluster_cidr",
      "10.1.0.0/16",
    );
    expect([code, out.split("\n")[0]]).toEqual([0, "node my_node  IPv4  no address known  1 service port"]);
    expect(out).toContain("offCluster → cluster (masquerade)");
  });

  test("--version and --help are no errors", async () => {
    expect(await env.run("--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
    const { code, out } = await env.run("run", "--help");
    expect(code).toBe(0);
    expect(out).toMatch(/--cluster-cidr/);
    expect(out).not.toMatch(/--ipvs-scheduler|--healthz-port/);
  });

  test("a source that can't be is exit code 1", async () => {
    const { code, err } = await env.run("print", "--source", `file:${env.directory}/nonexistent`);
    expect(code).toBe(1);
    expect(err).toMatch(/^turnout: \[not_found\] .*nonexistent.*\n$/);
  });
});
