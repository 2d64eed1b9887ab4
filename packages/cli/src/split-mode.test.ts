import { join } from "node:path";
import { stat } from "node:fs/promises";
import { createAuthority } from "@turnout/lab";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePort, CART, ToyEnvironment, type Outcome } from "./test-support/toy-environment.ts";

let stateServer: ToyEnvironment;
let node: ToyEnvironment;
let target: string;
let services: string;
let serving: Promise<Outcome>;

beforeEach(async () => {
  stateServer = await ToyEnvironment.create();
  node = await ToyEnvironment.create();
  target = `unix://${join(stateServer.directory, "node.sock")}`;
  services = await stateServer.file("services.yaml", CART);
});

afterEach(async () => {
  stateServer.stop.abort();
  node.stop.abort();
  await serving;
  await stateServer.remove();
  await node.remove();
});

async function says(env: ToyEnvironment, text: string): Promise<void> {
  await expect.poll(() => env.err).toContain(text);
}

async function serve(...flags: readonly string[]): Promise<void> {
  serving = stateServer.run("serve", "--source", `file:${services}`, "--listen", target, ...flags);
  await says(stateServer, "the source is complete");
}

async function rows(...flags: readonly string[]): Promise<readonly unknown[]> {
  const outcome = await node.run("print", "--source", `api:${target}`, "-o", "json", "--family", "4", ...flags);
  expect(outcome.err).toBe("");
  return (JSON.parse(outcome.out) as { rows: unknown[] }[])[0]?.rows ?? [];
}

describe("a node-state server in another process", () => {
  test("gives what the same source gives in this one, for whatever node and settings are asked", async () => {
    await serve();
    const there = await node.run("print", "--source", `api:${target}`, "--cluster-cidr", "10.1.0.0/16", "-o", "json");
    const here = await node.run("print", "--source", `file:${services}`, "--cluster-cidr", "10.1.0.0/16", "-o", "json");
    expect(there.code).toBe(0);
    expect(JSON.parse(there.out)).toEqual(JSON.parse(here.out));
    const local = (all: readonly unknown[]): unknown =>
      (all[0] as { endpoints: { isLocal: boolean }[] }).endpoints.map((one) => one.isLocal);
    expect(local(await rows())).toEqual([true, false]);
    expect(local(await rows("--node-name", "node2"))).toEqual([false, true]);
  });

  test("can be asked by a relay", async () => {
    await serve();
    const relay = await ToyEnvironment.create();
    const relayTarget = `unix://${join(relay.directory, "relay.sock")}`;
    const relaying = relay.run("serve", "--source", `api:${target}`, "--listen", relayTarget);
    await says(relay, "serving the node-state API");
    const outcome = await node.run("print", "--source", `api:${relayTarget}`, "-o", "json");
    expect(JSON.parse(outcome.out)).toMatchObject([{ rows: [{ key: "shop/cart:http/TCP" }] }, { rows: [] }]);
    relay.stop.abort();
    expect((await relaying).code).toBe(0);
    await relay.remove();
  });

  test("answers for one node alone when it is told to, on a socket with the mode it is told", async () => {
    await serve("--node-name", "node1", "--socket-mode", "0600");
    expect((await stat(join(stateServer.directory, "node.sock"))).mode & 0o777).toBe(0o600);
    expect(await rows()).toHaveLength(1);
    const refused = await node.run("print", "--source", `api:${target}`, "--node-name", "node2");
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toContain(
      "[permission_denied] the node-state API ended the stream ([permission_denied] only node node1 may be asked for here",
    );
  });

  test("over mutual TLS answers a node's certificate for that node", async () => {
    const authority = createAuthority("node-state servers", Date.now());
    const pems = async (env: ToyEnvironment, commonName: string): Promise<readonly [ca: string, cert: string, key: string]> => {
      const { cert, key } = authority.issue({ commonName, hosts: ["127.0.0.1"] });
      return [await env.file("ca.pem", authority.cert), await env.file("cert.pem", cert), await env.file("key.pem", key)];
    };
    const port = await freePort();
    const [ca, cert, key] = await pems(stateServer, "stateServer");
    await serve("--listen", `tls://127.0.0.1:${port}`, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key);
    const [apiCa, apiCert, apiKey] = await pems(node, "system:node:node1");
    const ask = (name: string): Promise<Outcome> => {
      const files = ["--api-ca", apiCa, "--api-cert", apiCert, "--api-key", apiKey];
      return node.run("print", "--source", `api:tls://127.0.0.1:${port}`, "-o", "json", "--node-name", name, ...files);
    };
    expect(JSON.parse((await ask("node1")).out)).toMatchObject([{ rows: [{ key: "shop/cart:http/TCP" }] }, {}]);
    expect(await ask("node2")).toMatchObject({
      code: 1,
      err: expect.stringContaining('may ask for node "node1" alone, not for this one: node node2') as string,
    });
    // The unix socket is still there beside it.
    expect(await rows()).toHaveLength(1);
  });

  test("tells how it is, and what it has done", async () => {
    const [metrics, healthz] = [await freePort(), await freePort()];
    await serve("--node-name", "node1", "--metrics-bind-address", `127.0.0.1:${metrics}`, "--healthz-bind-address", `127.0.0.1:${healthz}`);
    await says(stateServer, "serving metrics");
    await says(stateServer, "serving healthz");
    const get = async (port: number, path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    for (const path of ["/livez", "/healthz", "/readyz"])
      expect(JSON.parse(await get(healthz, path))).toMatchObject({ ok: true, complete: true, source: { files: "followed" } });
    expect(await rows()).toHaveLength(1);
    const text = await get(metrics, "/metrics");
    const counts = {
      turnout_api_watchers: 0,
      turnout_api_silent_streams: 0,
      turnout_api_views: 1,
      turnout_api_kpng_views: 0,
      turnout_api_listening: 1,
      turnout_api_change_sets_total: 1,
      turnout_api_full_states_total: 1,
      turnout_api_operations_total: 1,
      turnout_source_complete: 1,
      'turnout_source_up{part="files"}': 1,
      'turnout_store_objects{kind="Service"}': 1,
      'turnout_store_objects{kind="EndpointSlice"}': 1,
      'turnout_store_objects{kind="Node"}': 1,
      'turnout_object_changes_total{kind="Service"}': 1,
      'turnout_object_issues_total{kind="Service"}': 0,
    };
    const reported = new Map(text.split("\n").map((line) => line.split(/ (?=[^ ]*$)/) as [string, string]));
    expect(Object.fromEntries(Object.keys(counts).map((name) => [name, Number(reported.get(name))]))).toEqual(counts);
    expect(Number(reported.get("turnout_api_sent_bytes_total"))).toBeGreaterThan(100);
    const asked = await node.run("status", "--address", `127.0.0.1:${metrics}`);
    expect(asked.out).toMatch(/^node-state server: healthy\n(?:.*\n)+API objects: Service 1, EndpointSlice 1, Node 1, ServiceCIDR 0\n/);
    expect(text).toContain("process_resident_memory_bytes ");
    const refused = await node.run("print", "--source", `api:${target}`, "--node-name", "node2");
    expect(refused.code).toBe(1);
    expect(await get(metrics, "/metrics")).toContain('turnout_api_refused_total{code="PERMISSION_DENIED"} 1');
  });

  test("that is not there is waited for, and missed in the end", async () => {
    serving = Promise.resolve({ code: 0, out: "", err: "" });
    const outcome = await node.run("print", "--source", `api:${target}`, "--timeout", "300ms");
    expect(outcome.code).toBe(1);
    expect(outcome.err).toContain(`[timed_out] nothing complete within 0.3 s: source api:${target}`);
  });

  test("says which flags have no effect on files", async () => {
    await serve("--kubeconfig", "server.conf", "--master", "https://10.0.0.1");
    expect(await rows()).toHaveLength(1);
    stateServer.stop.abort();
    const { err } = await serving;
    for (const flag of ["--kubeconfig", "--master"]) expect(err).toContain(`${flag} has no effect`);
  });

  const wrongs: readonly [flags: readonly string[], reason: string][] = [
    [["--streams-per-client", "0"], '"0" is no number from 1 to 99999: --streams-per-client'],
    [["--socket-mode", "rw"], '"rw" is no file mode: --socket-mode: write octal digits, e.g. 0660'],
    [["--socket-owner", "root"], '"root" is no owner: --socket-owner: write numbers, e.g. 0:1000'],
    [["--node-name", "a b"], '"a b" is no name of a node: --node-name'],
    [["--listen", "tcp://0.0.0.0:1"], "over a network it takes mutual TLS"],
    [["--listen", "tls://127.0.0.1:0"], "listening on TLS needs certificates"],
    [["--tls-ca", "ca.pem"], "mutual TLS takes all three files: --tls-ca, --tls-cert, --tls-key"],
    [
      ["--tls-ca", "a", "--tls-cert", "b", "--tls-key", "c"],
      "nothing is listened on over TLS: --tls-ca, --tls-cert, --tls-key: add --listen tls://",
    ],
    [["--tls-any-node", "relay"], "nothing is listened on over TLS: --tls-any-node: add --listen tls://HOST:PORT, or leave them out"],
    [["--source", "api:tls://127.0.0.1:1"], "a target over TLS needs certificates"],
    [["--source", "api:nowhere"], "it is no address"],
    [["--metrics-bind-address", "here"], '"here" is no address to listen on: --metrics-bind-address: write IP:PORT, e.g. 127.0.0.1:12091'],
    [["--healthz-bind-address", "10.0.0.1:0"], "is no address to listen on: --healthz-bind-address"],
  ];
  test.each(wrongs)("refuses %j as bad usage", async (flags, reason) => {
    serving = stateServer.run("serve", "--source", `file:${services}`, "--listen", target, ...flags);
    const { code, err } = await serving;
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
  });
});
