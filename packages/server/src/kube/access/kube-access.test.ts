import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createApiServer, createAuthority, type ApiServer, type ApiServerOptions, type Authority } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import { asked, KubeRun, service, watching } from "../../test-support/kube.ts";
import { eventually, TestClock, untilTestEnds } from "../../test-support/world.ts";
import { createKubeSource } from "../kube-source.ts";

let authority: Authority;
let api: ApiServer;
let run: KubeRun;

beforeEach(async () => {
  run = await KubeRun.create();
  authority = createAuthority("lab", Date.now());
});

async function start(options: ApiServerOptions = {}): Promise<void> {
  const tls = { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }), ca: authority.cert };
  api = untilTestEnds(await createApiServer({ ...options, tls: { ...tls, ...options.tls } }));
  api.apply(service("cart"));
}

async function inCluster(): Promise<void> {
  const { hostname, port } = new URL(api.url);
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
  await run.start(api, {}, { kubeconfig: undefined, env, serviceAccountDir: run.directory });
}

const warnings = (): string => run.log.lines.map(({ line, fields }) => `${line} ${String(fields["error"])}`).join("\n");

describe("in a pod", () => {
  it("uses the service account, and its new token and authority as soon as they are there", async () => {
    await start({ token: "first" });
    await writeFile(join(run.directory, "token"), "first\n");
    await writeFile(join(run.directory, "ca.crt"), authority.cert);
    await inCluster();
    await run.sink.until((seen) => seen.isSynced);
    await watching(api);
    expect(api.connectionCount).toBe(4);
    const { port } = new URL(api.url);
    await api.close();
    authority = createAuthority("next", Date.now());
    await writeFile(join(run.directory, "token"), "second, projected\n");
    await writeFile(join(run.directory, "ca.crt"), authority.cert);
    await start({ token: "second, projected", port: Number(port) });
    await watching(api);
    expect(asked(api, "services").length).toBeGreaterThan(0);
  });

  it("of Windows, finds the service account below the folder with the pod's volumes", async () => {
    await start({ token: "first" });
    const account = join(run.directory, "var", "run", "secrets", "kubernetes.io", "serviceaccount");
    await mkdir(account, { recursive: true });
    await writeFile(join(account, "token"), "first\n");
    await writeFile(join(account, "ca.crt"), authority.cert);
    const { hostname, port } = new URL(api.url);
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, CONTAINER_SANDBOX_MOUNT_POINT: run.directory };
    await run.start(api, {}, { kubeconfig: undefined, env });
    await run.sink.until((seen) => seen.isSynced);
    expect(asked(api, "services").length).toBeGreaterThan(0);
  });

  it.each([
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::1"],
    ["an IPv6 address in brackets", "[::1]"],
  ])("finds the API server at %s", async (_name, host) => {
    authority = createAuthority("lab", Date.now());
    const tls = { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1", "::1"] }), ca: authority.cert };
    api = untilTestEnds(await createApiServer({ tls, host: host.replace(/[[\]]/g, "") }));
    api.apply(service("cart"));
    await writeFile(join(run.directory, "token"), "first\n");
    await writeFile(join(run.directory, "ca.crt"), authority.cert);
    const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: new URL(api.url).port };
    await run.follow(api, {}, { kubeconfig: undefined, env, serviceAccountDir: run.directory });
    expect(run.sink.objects.has("Service shop/cart")).toBe(true);
  });

  it("says what is wrong with the pod's environment, and takes an empty one for absent", async () => {
    api = untilTestEnds(await createApiServer());
    const error = async (host: string, port: string): Promise<string> => {
      const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, HOME: run.directory };
      const source = createKubeSource({ clock: new TestClock(), random: () => 0.5, log: run.log, env });
      return source.run(run.sink, run.stop.signal).then(() => "", String);
    };
    expect(await error("fe80::1%eth0", "443")).toContain("the pod's environment names no API server: [fe80::1%eth0]:443");
    expect(await error("10.96.0.1", "tcp://10.96.0.1:443")).toContain("[invalid_object] the pod's environment names no API server");
    expect(await error("", "")).toContain("no Kubernetes API server is configured");
  });

  it("does not speak to a server with another authority", async () => {
    await start();
    await writeFile(join(run.directory, "token"), "secret\n");
    await writeFile(join(run.directory, "ca.crt"), createAuthority("other", Date.now()).cert);
    await inCluster();
    await eventually(() => run.log.failing().size === 4);
    expect(warnings()).toContain("[feed_lost] the connection to the API server failed");
    expect(api.requests).toEqual([]);
  });
});

describe("by kubeconfig", () => {
  it("shows its client certificate", async () => {
    await start({ tls: { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }), clientCa: authority.cert } });
    const clientCertificate = authority.issue({ commonName: "system:kube-proxy" });
    await run.follow({ kubeconfig: () => api.kubeconfig({ clientCertificate }) });
    expect(run.sink.objects.has("Service shop/cart")).toBe(true);
  });

  it("is refused without one", async () => {
    await start({ tls: { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }), clientCa: authority.cert } });
    await run.start(api);
    await eventually(() => run.log.failing().size === 4);
    expect(api.requests).toEqual([]);
  });

  it("checks the server's name, another one when told, or nothing when told", async () => {
    await start({ tls: authority.issue({ commonName: "api", hosts: ["api.lab"] }) });
    const insecure = api.kubeconfig().replace("cluster:\n", "cluster:\n      insecure-skip-tls-verify: true\n");
    const named = api.kubeconfig().replace("cluster:\n", "cluster:\n      tls-server-name: api.lab\n");
    for (const [text, works] of [
      [insecure, true],
      [named, true],
      [api.kubeconfig(), false],
    ] as const) {
      const one = await KubeRun.create();
      await one.start({ kubeconfig: () => text });
      await (works ? one.sink.until((seen) => seen.isSynced) : eventually(() => one.log.failing().size === 4));
      expect(one.sink.isSynced).toBe(works);
      await one.end();
    }
  });

  it("logs in by password", async () => {
    await start();
    const text = api.kubeconfig().replace("user: {}", "user: { username: proxy, password: secret }");
    await run.follow({ kubeconfig: () => text });
    expect(api.requests[0]?.authorization).toBe(`Basic ${Buffer.from("proxy:secret").toString("base64")}`);
  });

  it("logs in through a program, keeps what it gave, and logs in again after a 401", async () => {
    await start({ token: "token-1" });
    const script = `#!/bin/sh
n=$(cat "$(dirname "$0")/count" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$(dirname "$0")/count"
case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) echo "no info" >&2; exit 1 ;; esac
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"token-'$n'"}}'
`;
    await writeFile(join(run.directory, "login"), script);
    await chmod(join(run.directory, "login"), 0o755);
    const exec = "user: { exec: { apiVersion: client.authentication.k8s.io/v1, command: ./login } }";
    const text = api.kubeconfig({ token: undefined }).replace("user: {}", exec);
    await run.follow({ kubeconfig: () => text });
    await watching(api);
    expect(new Set(api.requests.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer token-1"]));
    api.requireToken("token-2");
    api.dropWatches();
    await eventually(() => api.requests.some(({ authorization }) => authorization === "Bearer token-2"));
    expect(run.sink.isSynced).toBe(true);
  });

  it("is overridden by --master in the address alone", async () => {
    await start({ token: "secret" });
    const text = api.kubeconfig({ server: "https://192.0.2.1:6443" });
    await run.follow({ kubeconfig: () => text }, {}, { master: api.url });
    expect(run.sink.objects.has("Service shop/cart")).toBe(true);
  });
});

it("an address needs no scheme: https with TLS material, else http", async () => {
  await start({ token: "secret" });
  const { host } = new URL(api.url);
  await run.follow({ kubeconfig: () => api.kubeconfig({ server: host }) });
  expect(run.sink.objects.has("Service shop/cart")).toBe(true);
  await run.end();
  await api.close();
  run = await KubeRun.create();
  api = untilTestEnds(await createApiServer());
  api.apply(service("till"));
  await run.follow(api, {}, { kubeconfig: undefined, master: new URL(api.url).host });
  expect(run.sink.objects.has("Service shop/till")).toBe(true);
});

it("--master alone needs no credentials", async () => {
  api = untilTestEnds(await createApiServer());
  api.apply(service("cart"));
  await run.follow(api, {}, { kubeconfig: undefined, master: `${api.url}/` });
  expect(api.requests[0]).toMatchObject({ authorization: undefined, url: expect.stringMatching(/^\/api\/v1\/nodes\?/) as string });
});
