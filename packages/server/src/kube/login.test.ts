import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { createApiServer, createAuthority } from "@turnout/lab";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { KubeRun } from "../test-support/kube.ts";
import { startProxy } from "../test-support/proxies.ts";
import { eventually, testDirectory, untilTestEnds } from "../test-support/world.ts";
import { openLoginPlugin } from "./access/open-login.ts";

let folder: string;
beforeEach(async () => {
  folder = await testDirectory();
});

const V1 = "client.authentication.k8s.io/v1";

/** A login program that counts its calls, and prints `$n` where the number of this call belongs. */
async function program(status: string, apiVersion = V1): Promise<string> {
  const command = join(folder, "login");
  const said = `{"kind":"ExecCredential","apiVersion":"${apiVersion}","status":${status}}`;
  await writeFile(command, `#!/bin/sh\necho "$@" $REGION >> ${folder}/calls\nn=$(wc -l < ${folder}/calls)\ncat <<E\n${said}\nE\n`);
  await chmod(command, 0o755);
  return command;
}

describe("a login program", () => {
  it("is given its arguments and environment, and asked again only after what it gave has expired", async () => {
    const soon = new Date(Date.now() + 400).toISOString();
    const command = await program(`{"token":"token-$n-$REGION-$1","expirationTimestamp":"${soon}"}`);
    const login = openLoginPlugin({ exec: { apiVersion: V1, command, args: ["get"], env: [{ name: "REGION", value: "eu" }] } });
    const both = await Promise.all([login.credentials(), login.credentials()]);
    expect(both.map(({ authorization }) => authorization)).toEqual(["Bearer token-1-eu-get", "Bearer token-1-eu-get"]);
    await expect.poll(async () => (await login.credentials()).authorization).toBe("Bearer token-2-eu-get");
  });

  it("may give a certificate with its key", async () => {
    const command = await program('{"clientCertificateData":"CERT","clientKeyData":"KEY"}');
    const given = await openLoginPlugin({ exec: { apiVersion: V1, command } }).credentials();
    expect(given).toMatchObject({ authorization: undefined, cert: "CERT", key: "KEY" });
  });

  it.each([
    ["gives nothing", "{}", {}, "gave neither a token nor a certificate with its key"],
    ["speaks another version", '{"token":"a"}', { apiVersion: "client.authentication.k8s.io/v1beta1" }, "printed no ExecCredential of"],
    ["prints no JSON", "{", {}, "printed no JSON"],
    ["is not there", "{}", { command: "/nowhere/login", installHint: "get it from the cloud" }, "login of the kubeconfig's user failed"],
    ["needs a terminal", "{}", { interactiveMode: "Always" }, "needs a terminal"],
  ])("that %s is an error that names it", async (_, status, change, message) => {
    const exec = { apiVersion: V1, command: await program(status), ...change };
    await expect(openLoginPlugin({ exec }).credentials()).rejects.toMatchObject({
      code: "tool_failed",
      object: exec.command,
      message: expect.stringContaining(message) as string,
    });
  });
});

describe("OpenID Connect", () => {
  const token = (name: string, inS: number): string =>
    ["{}", JSON.stringify({ sub: name, exp: Date.now() / 1000 + inS }), "signature"]
      .map((part) => Buffer.from(part).toString("base64url"))
      .join(".");
  let provider: http.Server;
  let asked: string[];
  let issuer: string;
  let given: Record<string, string>;
  beforeEach(async () => {
    asked = [];
    given = {};
    const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
      const body = await text(request);
      asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? ""} ${body}`.trim());
      const said = request.method === "GET" ? { token_endpoint: `${issuer}/token` } : given;
      response.writeHead(given["error"] === undefined ? 200 : 400).end(JSON.stringify(said));
    };
    provider = untilTestEnds(http.createServer((request, response) => void answer(request, response)));
    provider.listen(0, "127.0.0.1");
    await once(provider, "listening");
    issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  });
  const login = (config: object): ReturnType<typeof openLoginPlugin> =>
    openLoginPlugin({
      "auth-provider": { name: "oidc", config: { "idp-issuer-url": issuer, "client-id": "kube", "client-secret": "s:t", ...config } },
    });

  it("uses the kubeconfig's token while it is valid", async () => {
    const valid = token("first", 60);
    expect((await login({ "id-token": valid }).credentials()).authorization).toBe(`Bearer ${valid}`);
    expect(asked).toEqual([]);
  });

  it("gets another by the refresh token, once for all who wait, and by the newest refresh token", async () => {
    const one = login({ "id-token": token("old", 5), "refresh-token": "r1" });
    given = { id_token: token("second", 5), refresh_token: "r2" };
    const both = await Promise.all([one.credentials(), one.credentials()]);
    expect(both.map(({ authorization }) => authorization)).toEqual(both.map(() => `Bearer ${given["id_token"]}`));
    given = { id_token: token("third", 60) };
    expect((await one.credentials()).authorization).toBe(`Bearer ${given["id_token"]}`);
    const basic = `Basic ${Buffer.from("kube:s%3At").toString("base64")}`;
    const post = (refresh: string): string => `POST /token ${basic} grant_type=refresh_token&refresh_token=${refresh}`;
    const get = "GET /.well-known/openid-configuration";
    expect(asked).toEqual([get, post("r1"), get, post("r2")]);
  });

  it("reaches the provider through the proxy of the environment", async () => {
    const authority = createAuthority("lab", Date.now());
    const listener = provider.listeners("request")[0] as http.RequestListener;
    const secure = untilTestEnds(https.createServer(authority.issue({ commonName: "provider", hosts: ["api.lab"] }), listener));
    secure.listen(0, "127.0.0.1");
    await once(secure, "listening");
    const host = `api.lab:${(secure.address() as AddressInfo).port}`;
    issuer = `https://${host}`;
    given = { id_token: token("proxied", 60) };
    const proxy = await startProxy({ kind: "http" });
    vi.stubEnv("HTTPS_PROXY", proxy.url);
    const ca = Buffer.from(authority.cert).toString("base64");
    const credentials = await login({ "refresh-token": "r1", "idp-certificate-authority-data": ca }).credentials();
    expect(credentials.authorization).toBe(`Bearer ${given["id_token"]}`);
    expect(proxy.asked).toEqual([`CONNECT ${host}`, `CONNECT ${host}`]);
    vi.unstubAllEnvs();
  });

  it("says what is wrong when it gets none", async () => {
    await expect(login({}).credentials()).rejects.toThrow("there is no refresh-token");
    given = { error: "invalid_grant" };
    const refused = login({ "refresh-token": "r1" }).credentials();
    await expect(refused).rejects.toMatchObject({ code: "tool_failed", message: expect.stringContaining("refused the login") as string });
  });
});

describe("an auth-provider that only client-node has", () => {
  const gcp = (command: string): object => ({
    "auth-provider": {
      name: "gcp",
      config: { "cmd-path": command, "cmd-args": "config", "token-key": "{.credential.token}", "expiry-key": "{.credential.end}" },
    },
  });

  it("logs in by it over TLS, and again when the API server refuses what it gave", async () => {
    const authority = createAuthority("lab", Date.now());
    const tls = { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }), ca: authority.cert };
    const api = untilTestEnds(await createApiServer({ tls, token: "token-1" }));
    const run = await KubeRun.create();
    const command = join(folder, "gcloud");
    const said = `{"credential":{"token":"token-'$n'","end":"'$(date -u -d '1 hour' +%FT%TZ)'"}}`;
    await writeFile(command, `#!/bin/sh\necho "$@" >> ${folder}/calls\nn=$(wc -l < ${folder}/calls)\necho '${said}'\n`);
    await chmod(command, 0o755);
    const user = `user: ${JSON.stringify(gcp(command))}`;
    await run.follow({ kubeconfig: () => api.kubeconfig({ token: undefined }).replace("user: {}", user) });
    api.requireToken("token-2");
    api.dropWatches();
    await eventually(() => api.requests.some(({ authorization }) => authorization === "Bearer token-2"));
    expect((await readFile(join(folder, "calls"), "utf8")).split("\n").slice(0, 2)).toEqual(["config", "config"]);
  });

  it.each([
    ["fails", { name: "gcp", config: {} }, "the login of the kubeconfig's user failed (Command failed: "],
    ["fails by itself", { name: "azure", config: { "cmd-path": "false" } }, "Failed to refresh token"],
    ["gives nothing", { name: "exec", config: {} }, "gave neither a token nor a certificate with its key"],
  ])("that %s is an error that names it", async (_, provider, message) => {
    await expect(openLoginPlugin({ "auth-provider": provider }).credentials()).rejects.toMatchObject({
      code: "tool_failed",
      object: `auth-provider ${provider.name}`,
      message: expect.stringContaining(message) as string,
    });
  });

  it("may read a token from a file", async () => {
    await writeFile(join(folder, "token"), "abc");
    const login = openLoginPlugin({ "auth-provider": { name: "file", config: { tokenFile: join(folder, "token") } } });
    expect((await login.credentials()).authorization).toBe("Bearer abc");
  });

  it("is one line where client-node is not installed, with what to install or write instead", () => {
    expect(() => openLoginPlugin(gcp("gcloud") as Record<string, unknown>, pathToFileURL(join(folder, "server.js")).href)).toThrow(
      "[tool_missing] the kubeconfig's login needs the package @kubernetes/client-node, which is not installed: auth-provider gcp: npm install @kubernetes/client-node@2, or log in by the exec program gke-gcloud-auth-plugin",
    );
  });

  it("is no other: what client-node has not either is refused", () => {
    expect(() => openLoginPlugin({ "auth-provider": { name: "openstack" } })).toThrow(
      expect.objectContaining({ code: "invalid_object", object: "openstack" }) as Error,
    );
  });
});
