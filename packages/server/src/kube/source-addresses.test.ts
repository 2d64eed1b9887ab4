import { createServer } from "node:net";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { TestClock, untilTestEnds } from "../test-support/world.ts";
import { PLAIN_TLS, type KubeEndpoint } from "./access/kube-access.ts";
import { createKubeClient, type KubeClient } from "./kube-client.ts";

/** What a client says of where it connects to, up to when a server has a connection. */
async function noted(url: string, proxyUrl?: string): Promise<readonly string[]> {
  const seen: string[] = [];
  const endpoint: KubeEndpoint = {
    server: new URL(url),
    headers: {},
    tls: PLAIN_TLS,
    proxyUrl: proxyUrl === undefined ? undefined : new URL(proxyUrl),
    login: undefined,
  };
  const access = { description: "", endpoint: () => Promise.resolve(endpoint), stamp: () => "", refresh: () => undefined };
  const options = { access, clock: new TestClock(0), connectTimeoutMs: 1e6, answerTimeoutMs: 1e6, env: {} };
  const client: KubeClient = createKubeClient({ ...options, onAddresses: (addresses) => void seen.push(...addresses) });
  await Promise.allSettled([client.ask({ path: "/", idleMs: 1e6 }, new AbortController().signal)]);
  client.close();
  return [...new Set(seen)];
}

/** A port at which connections are taken and closed. */
async function closingPort(): Promise<number> {
  const server = createServer((socket) => void socket.destroy());
  untilTestEnds({ close: () => void server.close() });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as { readonly port: number }).port;
}

describe("R-74 the addresses of the API server", () => {
  it("are the one in the URL, with the scheme's port where it names none", async () => {
    const port = await closingPort();
    expect(await noted(`http://127.0.0.1:${port}`)).toEqual([`127.0.0.1 ${port}`]);
    expect(await noted("http://[::1]")).toEqual(["::1 80"]);
    expect(await noted("https://127.0.0.1")).toEqual(["127.0.0.1 443"]);
  });

  it("are all that the name has", async () => {
    const port = await closingPort();
    expect(await noted(`http://localhost:${port}`)).toContain(`127.0.0.1 ${port}`);
  });

  it("are the proxy's where there is one", async () => {
    const port = await closingPort();
    expect(await noted("https://192.0.2.7:6443", `http://localhost:${port}`)).toContain(`127.0.0.1 ${port}`);
    expect(await noted("https://192.0.2.7:6443", `http://127.0.0.1:${port}`)).toEqual([`127.0.0.1 ${port}`]);
  });
});
