import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CART, freePort, TOY_BACKEND, ToyEnvironment, type Outcome } from "../test-support/toy-environment.ts";

let proxy: ToyEnvironment;
let env: ToyEnvironment;
let port = 0;
let running: Promise<Outcome> | undefined;
const others: Server[] = [];

beforeEach(async () => {
  [proxy, env] = [await ToyEnvironment.create(), await ToyEnvironment.create()];
  port = await freePort();
});

afterEach(async () => {
  for (const server of others.splice(0)) server.close();
  await stopProxy();
  await Promise.all([proxy.remove(), env.remove()]);
});

async function startProxy(): Promise<void> {
  await proxy.file("cart.yaml", CART);
  const backend = await proxy.file("toy.mjs", TOY_BACKEND);
  const common = ["--node-name", "node1", "--healthz-bind-address", ""];
  const address = `127.0.0.1:${port}`;
  const source = `file:${join(proxy.directory, "cart.yaml")}`;
  running = proxy.run("run", "--source", source, "--backend", backend, "--metrics-bind-address", address, ...common);
  await proxy.until("the first sync", () => proxy.err.includes('"family":"IPv4"') && proxy.err.includes("first sync done"));
}

async function stopProxy(): Promise<void> {
  proxy.stop.abort();
  await running;
  running = undefined;
}

/** Something else that has the port. */
async function serveOther(status: number, body: string): Promise<void> {
  const server = createHttpServer((_request, response) => response.writeHead(status).end(body)).listen(port, "127.0.0.1");
  others.push(server);
  await once(server, "listening");
}

describe("turnout status", () => {
  test("tells of the proxy that runs here, as text and as JSON", async () => {
    await startProxy();
    const { code, out, err } = await env.run("status", "--address", `127.0.0.1:${port}`);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^node node1: healthy\nturnout 1\.2\.3, backend toy, source file:.*cart\.yaml, running since /);
    expect(out).toMatch(/^IPv4 +1 +1 +0 +2 +3 /m);
    const { out: json } = await env.run("status", "--address", `0.0.0.0:${port}`, "-o", "json");
    expect(JSON.parse(json)).toMatchObject({ node: "node1", families: [{ family: "IPv4", objects: 3 }, { family: "IPv6" }] });
  });

  test("tells of a manifest that can't be parsed, until it can", async () => {
    await startProxy();
    const shown = async (): Promise<string> => (await env.run("status", "--address", `127.0.0.1:${port}`)).out.slice(-400);
    expect(await shown()).toContain("Reported about API objects: nothing");
    await proxy.file("cart.yaml", `${CART}\n---\napiVersion: v1\nkind: [`);
    await env.until("the report", () => proxy.err.includes("can't be parsed"));
    expect(await shown()).toMatch(/Reported about API objects:\n {2}\S*cart\.yaml:\d+: .*can't be parsed.*\n {4}→ /);
    await proxy.file("cart.yaml", CART);
    await env.until("the file is whole", async () => (await shown()).includes("Reported about API objects: nothing"));
  });

  test("--watch tells each change once where nobody looks at a terminal, and waits for a proxy that comes back", async () => {
    await startProxy();
    const watching = env.run("status", "--address", `127.0.0.1:${port}`, "--watch");
    await env.until("the first line", () => env.out.includes("1 Services, 1 ports"));
    await stopProxy();
    await env.until("the proxy is gone", () => env.out.includes("no proxy answers"));
    await startProxy();
    await env.until("it is back", () => env.out.split("\n").length === 4);
    env.stop.abort();
    const { code, out } = await watching;
    expect([code, out.split("1 Services, 1 ports").length]).toEqual([0, 3]);
  });

  test("--watch tells of a change that leaves all numbers as they were", async () => {
    await startProxy();
    const watching = env.run("status", "--address", `127.0.0.1:${port}`, "--watch");
    await env.until("the first line", () => env.out.includes("1 Services, 1 ports"));
    await proxy.file("cart.yaml", CART.replace("spec: {clusterIP", "spec: {internalTrafficPolicy: Local, clusterIP"));
    await env.until("the second line", () => env.out.split("\n").length > 2);
    env.stop.abort();
    await watching;
    expect(env.out).toMatch(/IPv4: .*, change set 1, .*\n.*IPv4: .*, change set 2, /);
  });

  test("--watch draws on a terminal in place", async () => {
    await startProxy();
    env.isOutputTerminal = true;
    const watching = env.run("status", "--address", `127.0.0.1:${port}`, "--watch");
    await env.until("two pictures", () => env.out.split("\u001b[H").length > 2);
    env.stop.abort();
    await watching;
    expect(env.out.startsWith("\u001b[Hnode node1: healthy\u001b[K\n")).toBe(true);
  });

  test.each<readonly [name: string, other: readonly [number, string] | undefined, message: RegExp]>([
    ["nobody", undefined, /^turnout: \[not_found\] no proxy answers \(.*ECONNREFUSED.*\): 127\.0\.0\.1:\d+: is it running on this host/],
    ["kube-proxy", [404, "404 page not found"], /^turnout: \[not_found\] what answers there is no Turnout, or one that is older: 127/],
    ["a page", [200, "<html>"], /^turnout: \[not_found\] what answers there is no Turnout: 127/],
    ["a proxy of another host", [403, "only this host is answered\n"], /^turnout: \[permission_denied\] only this host is answered: 127/],
    ["a broken proxy", [500, "internal error\n"], /^turnout: \[tool_failed\] internal error: 127/],
  ])("where %s answers is one line and exit code 1", async (_name, other, message) => {
    if (other !== undefined) await serveOther(...other);
    const { code, out, err } = await env.run("status", "--address", `127.0.0.1:${port}`);
    expect([code, out, err.split("\n").length]).toEqual([1, "", 2]);
    expect(err).toMatch(message);
  });

  test("an address that is none is bad usage", async () => {
    const { code, err } = await env.run("status", "--address", "nowhere");
    expect([code, err]).toEqual([2, 'turnout: [invalid_object] "nowhere" is no address: --address: write IP:PORT, e.g. 127.0.0.1:10249\n']);
  });
});
