import { link, lstat, readdir, utimes } from "node:fs/promises";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { ProxyError, type Answer } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { toyConfig, ToyProxy } from "../../test-support/toy-proxy.ts";
import {
  eventually,
  flushPromises,
  freePort,
  toyChange,
  toyFull,
  toyModule,
  toyNode,
  toyRow,
  withBackends,
} from "../../test-support/toys.ts";
import type { RunConfig } from "../config/run-config.ts";
import type { ProxyStatus } from "./status.ts";
import type { WhyHelp } from "./why-help.ts";
import { whySocketPath } from "./why-socket.ts";

let proxy: ToyProxy;
let port = 0;

beforeEach(async () => {
  proxy = new ToyProxy();
  port = await freePort();
});

afterEach(() => proxy.end());

async function start(module = toyModule(proxy.kernel), overrides: Partial<RunConfig> = {}, why: WhyHelp = {}): Promise<void> {
  const config = toyConfig({ metricsBindAddress: { ip: "127.0.0.1", port }, ...overrides });
  void proxy.start({ config, source: "file:shop.yaml", why }, module);
  await eventually("the port answers", () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  await eventually("the socket is there", () =>
    whySocketPath(port, proxy.runDirectory)
      .then(lstat)
      .then(
        (stats) => stats.isSocket(),
        () => false,
      ),
  );
}

/** As {@link start}, with both families' first states in force. */
async function started(...parts: Parameters<typeof start>): Promise<void> {
  await start(...parts);
  proxy.pushBoth();
  await flushPromises();
}

async function status(): Promise<ProxyStatus> {
  return (await (await fetch(`http://127.0.0.1:${port}/turnout/status`)).json()) as ProxyStatus;
}

/** Ask why; by default of a packet to the Service there is. */
function askWhy(more: Readonly<Record<string, string>> = {}): Promise<Response> {
  const query = new URLSearchParams({ from: "10.1.0.7", to: "10.96.0.10", port: "80", device: "veth3", ...more });
  return askSocket(query.toString());
}

/** Ask as `turnout why` does. */
async function askSocket(query: string): Promise<Response> {
  const socketPath = await whySocketPath(port, proxy.runDirectory);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ socketPath, path: `/turnout/why?${query}` }, resolve).on("error", reject);
  });
  return new Response(await textOf(answer), { status: answer.statusCode ?? 0 });
}

async function answerTo(more?: Readonly<Record<string, string>>): Promise<Answer> {
  return (await (await askWhy(more)).json()) as Answer;
}

async function pass(ms: number): Promise<void> {
  await proxy.world.clock.advance(ms);
}

describe("/turnout/status", () => {
  test("says before the first sync that nothing is in force, and then what is", async () => {
    await start();
    const before = await status();
    expect(before).toMatchObject({ version: "0.1.0", backend: "toy", node: "node1", source: "file:shop.yaml", versions: { toy: "1" } });
    expect(before.families.map(({ appliedSinceMs }) => appliedSinceMs)).toEqual([undefined, undefined]);
    proxy.pushBoth();
    await flushPromises();
    const atMs = proxy.world.clock.nowMs();
    await pass(5_000);
    const { families, health, issues } = await status();
    expect(families).toHaveLength(2);
    expect(families[0]).toMatchObject({ family: "IPv4", services: 1, rows: 1, endpoints: 1, rowsWithoutEndpoints: 0, objects: 2 });
    expect(families[0]).toMatchObject({ appliedSinceMs: atMs, lastSyncMs: atMs, isHealthy: true, refused: { count: 0, first: [] } });
    expect(families[0]?.waiting).toBeUndefined();
    expect(families[1]).toMatchObject({ family: "IPv6", services: 0, rows: 0, objects: 1 });
    expect([health, issues.count]).toEqual([{ isHealthy: true, isEligible: true, reason: "" }, 0]);
  });

  test("gives times as the wall clock is set now, also those of what was before", async () => {
    await started();
    await pass(5_000);
    const { nowMs: beforeMs, startedMs, families } = await status();
    proxy.world.clock.wallAheadMs = 7_200_000;
    const after = await status();
    expect([after.nowMs - beforeMs, after.startedMs - startedMs]).toEqual([7_200_000, 7_200_000]);
    expect((after.families[0]?.lastSyncMs ?? 0) - (families[0]?.lastSyncMs ?? 0)).toBe(7_200_000);
    expect((after.families[0]?.appliedSinceMs ?? 0) - (families[0]?.appliedSinceMs ?? 0)).toBe(7_200_000);
  });

  test("tells what decides about its rules besides objects, and that the backend is to count", async () => {
    const allowedAddresses = { externalIPs: [], loadBalancerIPs: undefined };
    const module = { ...toyModule(proxy.kernel), countingOptions: { counters: true } };
    await start(module, { serviceMetricsMax: 5, serviceEntriesMax: 60, allowedAddresses, backendOptions: { nodes: "here" } });
    expect((await status()).ruleSettings).toEqual({
      backendOptions: { nodes: "here", counters: true },
      serviceEntriesMax: 60,
      allowedExternalIPs: [],
    });
  });

  test("tells what waits, since when, and why", async () => {
    await started();
    await pass(1_000);
    for (let times = 0; times < 2; times++) proxy.kernel.failures.push(new ProxyError("timed_out", "another program holds the lock"));
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await flushPromises();
    const [family] = (await status()).families;
    expect(family?.waiting).toMatchObject({ sinceMs: proxy.world.clock.nowMs(), error: "[timed_out] another program holds the lock" });
    expect(family?.waiting?.rows).toEqual({ count: 1, first: ["shop/cart:http/TCP"] });
    await pass(30_000);
    await pass(30_000);
    const [later] = (await status()).families;
    expect([later?.waiting, later?.latency?.samples]).toEqual([undefined, 1]);
  });

  test("tells what the host refuses: the object, its row and what the host said, until it is taken", async () => {
    const refused = new ProxyError("tool_failed", "no route to the endpoint", { hint: "see ip route" });
    let isRefusing = true;
    const module = withBackends(toyModule(proxy.kernel), (inner) => ({
      apply: async (plan, signal) => {
        await inner.apply(plan, signal);
        return isRefusing && JSON.stringify(plan).includes("10.96.0.10") ? { failed: new Map([["service 10.96.0.10:80", refused]]) } : {};
      },
    }));
    await started(module);
    const sinceMs = proxy.world.clock.nowMs();
    await pass(10_000);
    const [family] = (await status()).families;
    const error = { code: "tool_failed", message: "[tool_failed] no route to the endpoint: see ip route", hint: "see ip route" };
    expect(family?.refused).toEqual({
      count: 1,
      first: [{ object: "service 10.96.0.10:80", rows: ["shop/cart:http/TCP"], error, sinceMs }],
    });
    const { causes } = await answerTo();
    expect(causes.find(({ id }) => id === "refused_row")).toMatchObject({
      says: `the host refused service 10.96.0.10:80 of Service shop/cart:http: ${error.message}`,
      fix: "see ip route",
    });
    isRefusing = false;
    await pass(60_000);
    expect((await status()).families[0]?.refused.count).toBe(0);
  });

  test("tells what is wrong with API objects, once for both families, for as long as it is", async () => {
    await start({ ...toyModule(proxy.kernel), capabilities: { ...toyModule(proxy.kernel).capabilities, TCP: "not here" } });
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    proxy.feeds.IPv6.push(toyFull([toyRow("cart", { family: "IPv6" })], toyNode({ family: "IPv6" })));
    await flushPromises();
    const issue = { object: "Service port shop/cart:http/TCP", what: "left out, no TCP: not here", hint: "use another backend" };
    expect((await status()).issues).toEqual({ count: 1, first: [issue] });
    for (const family of ["IPv4", "IPv6"] as const) proxy.feeds[family].push(toyChange({ family, delete: ["shop/cart:http/TCP"] }));
    await pass(100);
    expect((await status()).issues.count).toBe(0);
  });

  test("refuses a Service's name with its addresses", async () => {
    await started();
    const askOf = async (service: string): Promise<readonly [number, string]> => {
      const asked = await askSocket(`service=${service}`);
      return [asked.status, (await asked.text()).trim()];
    };
    expect(await askOf("shop/cart")).toEqual([400, expect.stringContaining("Service shop/cart has 10.96.0.10:80/TCP")]);
    expect(await askOf("shop/none")).toEqual([400, "no Service of that name has an address here"]);
  });

  test("says of any packet that no Service is left, where all were taken away", async () => {
    await started();
    await pass(1_000);
    expect((await answerTo()).causes.map(({ id }) => id)).not.toContain("no_services");
    for (const family of ["IPv4", "IPv6"] as const) proxy.feeds[family].push(toyChange({ family, delete: ["shop/cart:http/TCP"] }));
    await pass(1_000);
    const [cause] = (await answerTo()).causes;
    expect(cause).toMatchObject({ id: "no_services", show: ["turnout status", "ls -la shop.yaml"] });
    expect(cause).not.toHaveProperty("isSure");
  });

  test("knows that a device was assumed, where who asks says so", async () => {
    await started();
    expect((await answerTo({ assumed: "yes" })).packet).toMatchObject({ device: "veth3", isDeviceAssumed: true });
    expect((await answerTo()).packet).not.toHaveProperty("isDeviceAssumed");
  });

  test("knows addresses on devices without a carrier, which a process does not see", async () => {
    await started(toyModule(proxy.kernel), {}, { addresses: () => Promise.resolve(["192.168.50.1"]) });
    const asked = await askSocket("from=192.168.50.1&to=10.96.0.10&port=80");
    const { packet, steps } = (await asked.json()) as Answer;
    expect([packet.device, steps[0]?.says]).toEqual(["", "192.168.50.1 is this node itself"]);
  });

  test("takes FROM and TO as the command does, also host, and says what of them can't be read", async () => {
    const locate: NonNullable<WhyHelp["locate"]> = ({ from, ...rest }) =>
      Promise.resolve({ ...rest, source: from === "host" ? "172.18.0.1" : from, device: from === "host" ? "" : "veth3" });
    await started(toyModule(proxy.kernel), {}, { locate });
    const askOf = async (from: string, to: string, more = {}): Promise<readonly [number, string]> => {
      const asked = await askSocket(new URLSearchParams({ from, to, ...more }).toString());
      return [asked.status, (await asked.text()).trim()];
    };
    const [, json] = await askOf("host", "10.96.0.10:80/udp");
    expect((JSON.parse(json) as Answer).packet).toMatchObject({ source: "172.18.0.1", device: "", port: 80, protocol: "UDP" });
    const [code, text] = await askOf("10.1.0.7", "10.96.0.10:80", { output: "text" });
    expect([code, text.split("\n")[0]]).toEqual([200, "TCP from 10.1.0.7 to 10.96.0.10:80/TCP, as node node1 sees it (toy)"]);
    for (const [from, to, said] of [
      ["", "10.96.0.10:80", /^\[invalid_object\] FROM: no address of a client/],
      ["10.1.0.7", "10.96.0.10", /^\[invalid_object\] TO: no port: .*write it behind the address: 10\.96\.0\.10:80$/],
      ["10.1.0.7", "shop/cart:http", /Service shop\/cart has 10\.96\.0\.10:80\/TCP/],
    ] as const)
      expect(await askOf(from, to)).toEqual([400, expect.stringMatching(said)]);
  });

  test("says of a look by the proxy, which has few rights, what it could not read; who looks alone is told nothing of that", async () => {
    const survey: NonNullable<WhyHelp["survey"]> = () => Promise.resolve({ steps: [], causes: [], unseen: ["iptables-legacy: no right"] });
    await started(toyModule(proxy.kernel), {}, { survey });
    const query = "from=10.1.0.7&to=10.96.0.10:80&device=veth3";
    expect(await (await askSocket(`${query}&output=text`)).text()).toContain(
      "could NOT be read by the proxy: iptables-legacy: no right\nto ask with all rights, as root on node node1:\n  turnout why 10.1.0.7 10.96.0.10:80\n",
    );
    expect(await (await askSocket(`${query}&survey=no`)).json()).not.toHaveProperty("isSurveyedByProxy");
  });

  test("is asked why at a socket of its user, and by the page within a budget", async () => {
    let looks = 0;
    const survey: NonNullable<WhyHelp["survey"]> = () => Promise.resolve((looks++, { steps: [], causes: [], unseen: [] }));
    await started(toyModule(proxy.kernel), { hasWebPage: true }, { survey });
    expect((await lstat(await whySocketPath(port, proxy.runDirectory))).mode & 0o777).toBe(0o600);
    const page = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/turnout/why?from=10.1.0.7&to=10.96.0.10:80&device=veth3`);
    const statuses: number[] = [];
    for (let times = 0; times < 100; times++) statuses.push((await page()).status);
    expect(statuses.filter((code) => code === 200)).toHaveLength(looks);
    expect(looks).toBeLessThan(20);
    expect(await (await page()).text()).toMatch(/^too many questions: ask again in \d+ s, or ask on the node itself, as root: turnout why/);
    expect((await askWhy()).status).toBe(200);
    await pass(60_000);
    expect((await page()).status).toBe(200);
  });

  test("removes the sockets that killed proxies of other network namespaces left, and no others", async () => {
    const own = await whySocketPath(port, proxy.runDirectory);
    const [left, used] = ["why-1-10249.sock", "why-2-10249.sock"].map((name) => join(dirname(own), name)) as [string, string];
    const server = createServer().listen(used);
    const killed = createServer().listen(own);
    await Promise.all([server, killed].map((one) => once(one, "listening")));
    // The file that goes with its server stays under another name.
    await link(own, left);
    await new Promise((resolve) => killed.close(resolve));
    for (const path of [left, used]) await utimes(path, 0, 0);
    await start();
    expect((await readdir(dirname(own))).toSorted()).toEqual([used, own].map((path) => path.slice(dirname(own).length + 1)).toSorted());
    await new Promise((resolve) => server.close(resolve));
  });

  test("is asked why over HTTP by nobody, where there is no page", async () => {
    await started();
    expect((await fetch(`http://127.0.0.1:${port}/turnout/why?from=10.1.0.7&to=10.96.0.10:80`)).status).toBe(404);
  });

  test("looks for Services of other proxies only where none here has the address", async () => {
    let looks = 0;
    const hidden = (): Promise<readonly []> => Promise.resolve((looks++, []));
    await started(toyModule(proxy.kernel), {}, { hidden });
    expect((await askWhy()).status).toBe(200);
    expect(looks).toBe(0);
    expect((await askWhy({ to: "10.96.0.99" })).status).toBe(200);
    expect(looks).toBe(1);
  });

  test("is answered to no name that a stranger's DNS may lead here", async () => {
    await start();
    const code = await new Promise((resolve) => {
      get({ host: "127.0.0.1", port, path: "/turnout/status", headers: { host: "evil.example" } }, (response) =>
        resolve(response.resume().statusCode),
      );
    });
    expect(code).toBe(403);
  });

  test("is for this host alone, and takes nothing but GET", async () => {
    await start();
    const answer = await fetch(`http://127.0.0.1:${port}/turnout/status`, { method: "POST" });
    expect([answer.status, await answer.text()]).toEqual([405, "nothing can be changed here: use GET\n"]);
    expect((await fetch(`http://127.0.0.1:${port}/turnout/status`, { method: "HEAD" })).status).toBe(200);
  });
});

describe("the page", () => {
  const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}/turnout${path}`, { redirect: "manual" });

  test("is not there unless it was asked for", async () => {
    await start();
    for (const path of ["", "/", "/page.js", "/services", "/changes"]) expect((await ask(path)).status).toBe(404);
  });

  test("is three files, Services and changes", async () => {
    await started(undefined, { hasWebPage: true });
    await pass(100);
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await flushPromises();
    expect([(await ask("")).status, (await ask("")).headers.get("location")]).toEqual([308, "/turnout/"]);
    for (const [path, type] of [
      ["/", "text/html"],
      ["/page.css", "text/css"],
      ["/page.js", "text/javascript"],
    ] as const) {
      const reply = await ask(path);
      expect([reply.status, reply.headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`]);
      expect(reply.headers.get("content-security-policy")).toContain("default-src 'none'");
    }
    const { changes } = (await (await ask("/changes?since=2")).json()) as { readonly changes: readonly { readonly text: string }[] };
    expect(changes.map(({ text }) => text)).toEqual(["shop/cart:http/TCP is gone"]);
    expect(await (await ask("/services?q=cart")).json()).toEqual({ count: 0, rows: [] });
  });
});

test("what is counted is in the metrics and in the status, where that was asked for", async () => {
  const seen: unknown[] = [];
  const inner = withBackends(toyModule(proxy.kernel), () => ({
    counts: () => Promise.resolve(new Map([["service 10.96.0.10:80", { connections: 5 }]])),
  }));
  const module = { ...inner, countingOptions: { counts: true }, parseOptions: (raw: unknown) => (seen.push(raw), raw) };
  await started(module, { serviceMetricsMax: 10 });
  await pass(100);
  expect(seen).toEqual([{ counts: true }]);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text).toContain(
    'turnout_service_connections_total{namespace="shop",service="cart",port="http",protocol="TCP",ip_family="IPv4"} 5',
  );
  expect((await status()).families[0]?.counted).toMatchObject({
    count: 1,
    first: [{ row: "shop/cart:http/TCP", counts: { connections: 5 } }],
  });
});
