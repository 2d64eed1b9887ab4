import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CART, ToyEnvironment, TOY_BACKEND } from "./test-support/toy-environment.ts";

let env: ToyEnvironment;

beforeEach(async () => {
  env = await ToyEnvironment.create();
  await env.file("cart.yaml", CART);
  await env.file("toy.mjs", TOY_BACKEND);
});

afterEach(() => env.remove());

function source(): string {
  return `file:${join(env.directory, "cart.yaml")}`;
}

async function kernel(): Promise<string> {
  const path = join(env.directory, "kernel-IPv4.json");
  return existsSync(path) ? await readFile(path, "utf8") : "empty";
}

interface ChangeLine {
  readonly family: string;
  readonly full: boolean;
  readonly node?: { readonly name: string };
  readonly set: readonly { readonly key: string }[];
  readonly delete: readonly string[];
}

describe("the addresses that Services may have", () => {
  test("are limited where Services are read, and the Service that asks for more is named", async () => {
    await env.file(
      "external.yaml",
      CART.replace("clusterIP: 10.96.0.10,", "clusterIP: 10.96.0.10, externalIPs: [192.0.2.1, 198.51.100.1],"),
    );
    const args = ["print", "--source", `file:${join(env.directory, "external.yaml")}`, "--family", "4"];
    const { code, out, err } = await env.run(...args, "--allowed-external-ip-cidrs", "198.51.100.0/24");
    expect([code, out.includes("198.51.100.1"), out.includes("192.0.2.1")]).toEqual([0, true, false]);
    expect(err).toContain('external IP outside the ranges allowed, it is left out: "192.0.2.1"');
  });

  test.each([
    ["print", "--allowed-external-ip-cidrs", "none"],
    ["serve", "--allowed-external-ip-cidrs", "none"],
    ["run", "--strict-source-ranges", "--backend", "./toy.mjs"],
    ["run", "--strict-external-ips", "--backend", "./toy.mjs"],
  ])("%s does not take a node-state server's for limited by %s", async (command, flag, ...more) => {
    const { code, err } = await env.run(command, "--source", "api:unix:///nowhere", flag, ...more);
    const refusal = `the process that reads Services limits their addresses: ${flag}: with --source api:, give it to the node-state server (turnout serve)\n`;
    expect([code, err]).toEqual([2, expect.stringContaining(`turnout: [invalid_object] ${refusal}`)]);
  });
});

describe("print", () => {
  test("a table", async () => {
    const { code, out, err } = await env.run("print", "--source", source(), "--family", "4");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe(
      [
        "node node1  IPv4  172.18.0.1  zone a  1 service port",
        "SERVICE PORT          DESTINATION            RULES    ENDPOINTS",
        "shop/cart:http/TCP    cluster 10.96.0.10:80  cluster  10.1.1.5:8080* 10.1.2.5:8080",
        "",
      ].join("\n"),
    );
  });

  test("topology hints are named where they are in use, and not where one endpoint has none", async () => {
    const hinted = CART.replace("conditions: {ready: true}}", "conditions: {ready: true}, hints: {forZones: [{name: a}]}}");
    const both = hinted.replace("nodeName: node2, conditions: {ready: true}}", "nodeName: node2, hints: {forZones: [{name: b}]}}");
    const print = async (text: string): Promise<string> => {
      const path = await env.file("hinted.yaml", text);
      return (await env.run("print", "--source", `file:${path}`, "--family", "4")).out;
    };
    expect(await print(both)).toContain("shop/cart:http/TCP  PreferSameZone  cluster 10.96.0.10:80");
    expect(await print(hinted)).not.toContain("Prefer");
  });

  test("JSON of both families; flags decide rules", async () => {
    const { out } = await env.run("print", "--source", source(), "-o", "json", "--cluster-cidr", "10.1.0.0/16", "--node-name", "NODE2");
    const [v4, v6] = JSON.parse(out) as { node: { name: string }; rows: { destinations: { rules: unknown[] }[] }[] }[];
    expect([v4?.node.name, v4?.rows.length, v6?.rows.length]).toEqual(["node2", 1, 0]);
    expect(v4?.rows[0]?.destinations[0]?.rules).toContainEqual({ from: "offCluster", to: "cluster", masquerade: true });
  });

  test("YAML", async () => {
    expect((await env.run("print", "--source", source(), "-o", "yaml", "--family", "IPv4")).out).toMatch(
      /^- family: IPv4\n {2}revision: 1\n/,
    );
  });

  test("what is wrong with an object is a warning, the rest is printed", async () => {
    await env.file("cart.yaml", CART.replace("10.1.1.5", "127.0.0.1"));
    const { code, out, err } = await env.run("print", "--source", source(), "--family", "4");
    expect(code).toBe(0);
    expect(err).toMatch(/warn .*127\.0\.0\.1/);
    expect(out).toContain("10.1.2.5:8080");
  });

  test("a warning from the configuration file is shown", async () => {
    const config = await env.file(
      "config.yaml",
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIRD: x\n",
    );
    expect((await env.run("print", "--source", source(), "--config", config)).err).toContain('unknown field "clusterCIRD" is ignored');
  });

  test("--watch prints one line of JSON per change until it is stopped", async () => {
    const done = env.run("print", "--source", source(), "-o", "json", "--family", "4", "--watch");
    await env.until("the first state", () => env.out.endsWith("\n"));
    await env.file("cart.yaml", CART.replace("10.1.2.5", "10.1.2.6"));
    await env.until("the change", () => env.out.includes("10.1.2.6"));
    env.stop.abort();
    expect((await done).code).toBe(0);
    const states = env.out.trim().split("\n");
    expect(states.length).toBeGreaterThanOrEqual(2);
    for (const line of states) expect(JSON.parse(line)).toHaveLength(1);
  });

  test("-o jsonl prints a full change set per family", async () => {
    const { code, out } = await env.run("print", "--source", source(), "-o", "jsonl");
    const sets = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as ChangeLine);
    expect(code).toBe(0);
    expect(sets.map(({ family, full, node, set }) => [family, full, node?.name, set.map(({ key }) => key)])).toEqual([
      ["IPv4", true, "node1", ["shop/cart:http/TCP"]],
      ["IPv6", true, "node1", []],
    ]);
  });

  test("--watch -o jsonl prints what changed and what is gone, and only that", async () => {
    const other = CART.replaceAll("name: cart", "name: other").replaceAll("10.96.0.10", "10.96.0.11").split("---").slice(1).join("---");
    await env.file("cart.yaml", `${CART}---${other}`);
    const done = env.run("print", "--source", source(), "-o", "jsonl", "--family", "4", "--watch");
    await env.until("the first state", () => env.out.endsWith("\n"));
    await env.file("cart.yaml", CART);
    await env.until("the deletion", () => env.out.includes('"delete":["shop/other:http/TCP"]'));
    env.stop.abort();
    expect((await done).code).toBe(0);
    const last = JSON.parse(env.out.trim().split("\n").at(-1) ?? "") as ChangeLine;
    expect(last).toMatchObject({ family: "IPv4", full: false, set: [], delete: ["shop/other:http/TCP"] });
    expect(last.node).toBeUndefined();
  });
});

describe("render", () => {
  test("objects and plan of a backend, nothing applied", async () => {
    const { code, out, err } = await env.run("render", "--source", source(), "--backend", "./toy.mjs", "--family", "4");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe(
      [
        "# IPv4: 3 objects",
        "table IPv4 = true",
        "shared pick = 1",
        'service 10.96.0.10:80 = ["10.1.1.5","10.1.2.5"]',
        "",
        "# IPv4: the plan for an empty host",
        "put table IPv4",
        "put shared pick",
        "put service 10.96.0.10:80",
        "",
      ].join("\n"),
    );
    expect(await kernel()).toBe("empty");
  });

  test("says which backend it took where nothing names one", async () => {
    env.exec = { ...env.exec, run: () => Promise.reject(new ProxyError("tool_missing", "no tool is needed")) };
    const { code, out } = await env.run("render", "--source", source(), "--family", "4");
    expect([code, out.split("\n")[0]]).toEqual([0, expect.stringMatching(/^# backend nft: no --backend .* turnout run would /)]);
  });

  test("what rows share is there once", async () => {
    const other = CART.replaceAll("name: cart", "name: other")
      .replaceAll("10.96.0.10", "10.96.0.11")
      .replaceAll("service-name: cart", "service-name: other");
    await env.file("cart.yaml", `${CART}---${other}`);
    const { out } = await env.run("render", "--source", source(), "--backend", "./toy.mjs", "--family", "4");
    expect(out.split("\n").filter((line) => line.startsWith("shared"))).toHaveLength(1);
    expect(out).toContain("# IPv4: 4 objects");
  });

  test("JSON", async () => {
    const { out } = await env.run("render", "--source", source(), "--backend", join(env.directory, "toy.mjs"), "-o", "json");
    expect(JSON.parse(out)).toMatchObject([
      { family: "IPv4", objects: [{ kind: "table" }, { kind: "shared" }, { kind: "service" }] },
      { family: "IPv6" },
    ]);
  });
});

describe("run", () => {
  const flags = ["--backend", "./toy.mjs", "--healthz-bind-address", "", "--metrics-bind-address", ""];

  test("--once brings rules in force and ends", async () => {
    const { code, err } = await env.run("run", "--source", source(), "--once", ...flags);
    expect(code).toBe(0);
    expect(await kernel()).toContain("10.96.0.10:80");
    const lines = err
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { msg: string });
    expect(lines.at(-1)?.msg).toBe("done, rules stay in place");
  });

  test("--once --dry-run prints the plan and does nothing", async () => {
    const { code, out } = await env.run("run", "--source", source(), "--once", "--dry-run", ...flags);
    expect([code, await kernel()]).toEqual([0, "empty"]);
    expect(env.err).toContain("done, nothing was applied");
    expect(out).toContain("put service 10.96.0.10:80\n");
  });

  test("--once fails with the reason", async () => {
    const { code, err } = await env.run(
      "run",
      "--source",
      source(),
      "--once",
      "--timeout",
      "1s",
      "--backend-option",
      "fail=true",
      ...flags,
    );
    expect(code).toBe(1);
    expect(err).toContain("\nturnout: [timed_out] not done within 1 s: [tool_failed] the toy refuses: --timeout waits longer\n");
  });

  test("an option the backend doesn't know is exit code 2", async () => {
    const { code, err } = await env.run("run", "--source", source(), "--backend-option", "colour=red", ...flags);
    expect(code).toBe(2);
    expect(err).toContain("unknown toy option colour");
  });

  test("--once gives up when the source never gets complete", async () => {
    const master = ["--master", "http://127.0.0.1:1", "--timeout", "300ms"];
    const { code, err } = await env.run("run", "--once", ...master, ...flags);
    expect(code).toBe(1);
    expect(err).toMatch(/turnout: \[timed_out\] nothing complete within 0.3 s: source kube: is it reachable/);
    expect(err).toContain("waiting for this node's Node object");
  });

  test("it follows the source until it is stopped, and leaves the rules", async () => {
    const done = env.run("run", "--source", source(), ...flags);
    await env.until("the first sync", async () => (await kernel()).includes("10.1.2.5"));
    await env.file("cart.yaml", CART.replace("10.1.2.5", "10.1.2.6"));
    await env.until("the change", async () => (await kernel()).includes("10.1.2.6"));
    env.stop.abort();
    expect((await done).code).toBe(0);
    expect(await kernel()).toContain("10.1.2.6");
  });

  test("a source without this node's Node object is said once, with what follows from it", async () => {
    const { code, err } = await env.run("run", "--source", source(), "--once", "--node-name", "elsewhere", ...flags);
    expect(code).toBe(0);
    expect(err.match(/no Node object of this node/g)).toHaveLength(1);
    expect((await env.run("run", "--source", source(), "--once", ...flags)).err).not.toContain("no Node object");
  });

  test("a changed configuration file ends it with exit code 1", async () => {
    const head =
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmetricsBindAddress: 127.0.0.9:40249\nhealthzBindAddress: 127.0.0.9:40256\n";
    const config = await env.file("config.yaml", head);
    const done = env.run("run", "--source", source(), "--backend", "./toy.mjs", "--config", config);
    await env.until("the first sync", async () => (await kernel()).includes("10.1.2.5"));
    await env.file("config.yaml", `${head}clusterCIDR: 10.0.0.0/8\n`);
    const { code, err } = await done;
    expect(code).toBe(1);
    expect(err).toContain("turnout: [restart_needed] the configuration file changed");
    expect(await kernel()).toContain("10.1.2.5");
  });
});

describe("cleanup", () => {
  test("removes what observe finds when the backend has no own way", async () => {
    await env.run("run", "--source", source(), "--once", "--backend", "./toy.mjs");
    expect(await kernel()).not.toBe("empty");
    const { code, out } = await env.run("cleanup", "--backend", "./toy.mjs");
    expect([code, out]).toEqual([0, "toy IPv4: clean\ntoy IPv6: clean\n"]);
    expect(await kernel()).toBe("empty");
    expect((await env.run("cleanup", "--backend", "./toy.mjs")).code).toBe(0);
  });

  test("opens one dataplane for both families: it may hold something for both", async () => {
    await env.run("cleanup", "--backend", "./toy.mjs");
    expect(await readFile(join(env.directory, "closed.txt"), "utf8")).toBe("closed\n");
  });

  test("exits with 1 when something could not be removed", async () => {
    await env.run("run", "--source", source(), "--once", "--backend", "./toy.mjs");
    const { code, err } = await env.run("cleanup", "--backend", "./toy.mjs", "--backend-option", "fail=true");
    expect(code).toBe(1);
    // Both families fail alike: said once.
    expect(err).toBe("turnout: [tool_failed] the toy refuses\n");
  });
});
