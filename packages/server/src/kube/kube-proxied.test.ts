import { createApiServer, createAuthority, type ApiServer } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import { KubeRun, service, watching } from "../test-support/kube.ts";
import { startProxy, type TestProxy, type TestProxyOptions } from "../test-support/proxies.ts";
import { eventually, untilTestEnds } from "../test-support/world.ts";

const authority = createAuthority("lab", Date.now());
const tls = { ...authority.issue({ commonName: "api", hosts: ["api.lab"] }), ca: authority.cert };
const proxyTls = authority.issue({ commonName: "proxy", hosts: ["127.0.0.1"] });

let run: KubeRun;
let api: ApiServer;
let proxy: TestProxy;

beforeEach(async () => {
  run = await KubeRun.create();
});

async function start(isTls: boolean, options: TestProxyOptions): Promise<void> {
  api = untilTestEnds(await createApiServer(isTls ? { tls } : {}));
  api.apply(service("cart"));
  proxy = await startProxy(options);
}

/** The emulator by a name that only the proxy knows. */
function named(): string {
  return api.url.replace("127.0.0.1", "api.lab");
}

function server(address: string, cluster = ""): Parameters<KubeRun["start"]>[0] {
  return { kubeconfig: () => api.kubeconfig({ server: address }).replace("cluster:\n", `cluster:\n${cluster}`) };
}

const KINDS: readonly (readonly [name: string, options: TestProxyOptions])[] = [
  ["HTTP", { kind: "http" }],
  ["HTTP with a login", { kind: "http", login: "turnout:s@/cret" }],
  ["HTTP over TLS", { kind: "http", tls: proxyTls }],
  ["SOCKS5", { kind: "socks5" }],
  ["SOCKS5 with a login", { kind: "socks5", login: "turnout:secret" }],
];

describe("an API server behind a proxy", () => {
  it.each(KINDS)("is followed through %s, which finds its name", async (_name, options) => {
    await start(true, options);
    const address = named();
    await run.follow(server(address), {}, { env: { HTTPS_PROXY: proxy.url } });
    await watching(api);
    api.apply(service("till"));
    await run.sink.until(({ objects }) => objects.has("Service shop/till"));
    const ask = `${options.kind === "http" ? "CONNECT" : "SOCKS"} ${new URL(address).host}`;
    expect(new Set(proxy.asked)).toEqual(new Set([ask]));
  });

  it.each(KINDS)("with plain HTTP is followed through %s", async (_name, options) => {
    await start(false, options);
    const address = named();
    const cluster = `      certificate-authority-data: ${Buffer.from(authority.cert).toString("base64")}\n`;
    await run.follow(server(address, cluster), {}, { env: { http_proxy: proxy.url } });
    expect(run.sink.objects.has("Service shop/cart")).toBe(true);
    const ask = options.kind === "http" ? `GET ${address}/api/v1/services` : `SOCKS ${new URL(address).host}`;
    expect(proxy.asked).toContain(ask);
    expect(proxy.asked).not.toContain("refused");
  });

  it.each(["http", "socks5"] as const)(
    "is followed through proxy-url of the kubeconfig (%s), whatever the environment says",
    async (kind) => {
      api = untilTestEnds(await createApiServer({ tls: { ...tls, ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }) } }));
      api.apply(service("cart"));
      proxy = await startProxy({ kind });
      const env = { HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "*" };
      await run.follow(server(api.url, `      proxy-url: ${proxy.url}\n`), {}, { env });
      expect(proxy.asked[0]).toBe(`${kind === "http" ? "CONNECT" : "SOCKS"} ${new URL(api.url).host}`);
    },
  );

  it("on loopback is followed directly, whatever the environment says", async () => {
    await start(false, { kind: "http" });
    await run.follow(server(api.url), {}, { env: { HTTP_PROXY: "http://127.0.0.1:9" } });
    expect(run.log.lines.find(({ line }) => line.endsWith("following the API server"))?.fields).not.toHaveProperty("proxy");
  });
});

describe("a proxy that does not work", () => {
  /** The first failure that the log shows. */
  async function failure(address: string, env: Readonly<Record<string, string>>): Promise<string> {
    await run.start(server(address), { connectTimeoutMs: 100 }, { env });
    await eventually(() => run.log.failing().size === 4);
    return run.log.lines.map(({ fields }) => String(fields["error"])).find((error) => error.includes("proxy")) ?? "";
  }

  const cases: readonly (readonly [name: string, options: TestProxyOptions, url: (proxy: string) => string, error: string])[] = [
    [
      "HTTP, a wrong login",
      { kind: "http", login: "a:b" },
      (url) => url.replace("a:b", "a:c"),
      "it answered 407 Proxy Authentication Required",
    ],
    ["SOCKS5, a wrong login", { kind: "socks5", login: "a:b" }, (url) => url.replace("a:b", "a:c"), "it refused the user or password"],
    [
      "SOCKS5, no login",
      { kind: "socks5", login: "a:b" },
      (url) => url.replace("a:b@", ""),
      "it takes no login that the proxy's address has",
    ],
    ["SOCKS5 at an HTTP proxy", { kind: "http" }, (url) => url.replace("http", "socks5"), "it does not speak SOCKS5"],
    ["HTTP at a SOCKS5 proxy", { kind: "socks5" }, (url) => url.replace("socks5", "http"), "the proxy"],
    [
      "nothing at its address",
      { kind: "http" },
      () => "http://127.0.0.1:9",
      "the connection to the proxy failed (connect ECONNREFUSED 127.0.0.1:9): http://127.0.0.1:9",
    ],
    ["silence", { kind: "http", isSilent: true }, (url) => url, "the proxy gave no connection in time"],
    ["silence of SOCKS5", { kind: "socks5", isSilent: true }, (url) => url, "the proxy gave no connection in time"],
  ];
  it.each(cases)("is named: %s", async (_name, options, url, error) => {
    await start(true, options);
    expect(await failure(named(), { HTTPS_PROXY: url(proxy.url) })).toContain(error);
    expect(api.requests).toEqual([]);
  });

  it("is named with what it says of the server", async () => {
    await start(true, { kind: "socks5" });
    expect(await failure("https://api.lab:9", { HTTPS_PROXY: proxy.url })).toContain(
      "the proxy made no connection: api.lab:9: connection refused",
    );
  });

  it("ends no slower than others: nothing is waited for when the run ends", async () => {
    await start(true, { kind: "http", isSilent: true });
    await run.start(server(named()), { connectTimeoutMs: 3_600_000 }, { env: { HTTPS_PROXY: proxy.url } });
    await eventually(() => proxy.connections === 4);
    await run.end();
    await eventually(() => proxy.connections === 0);
    expect(proxy.asked).toEqual([]);
  });

  it("of an unknown kind ends the run at once, and a password is not logged", async () => {
    await start(true, { kind: "http", login: "turnout:secret" });
    await run.follow(server(named()), {}, { env: { HTTPS_PROXY: proxy.url } });
    const said = run.log.lines.find(({ line }) => line.endsWith("following the API server"));
    expect(said?.fields["proxy"]).toBe(proxy.url.replace("turnout:secret@", ""));
    const other = await KubeRun.create();
    await expect(other.follow(server(named()), {}, { env: { HTTPS_PROXY: "socks4://127.0.0.1:1" } })).rejects.toThrow(
      "[invalid_object] HTTPS_PROXY names a proxy of an unknown kind: socks4://127.0.0.1:1",
    );
    await expect(other.end()).rejects.toThrow("unknown kind");
  });
});
