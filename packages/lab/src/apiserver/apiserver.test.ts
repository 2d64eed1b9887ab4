import { parse } from "yaml";
import { afterEach, describe, expect, it } from "vitest";
import { createAuthority } from "./certificate.ts";
import { createApiServer, type ApiServer, type ApiServerOptions } from "./server.ts";

const SERVICES = "/api/v1/namespaces/shop/services";
const JSON_TYPE = { "content-type": "application/json" };

let api: ApiServer;

afterEach(async () => api.close());

async function start(options: ApiServerOptions = {}): Promise<void> {
  api = await createApiServer({ nowMs: () => Date.parse("2026-03-04T05:06:07.890Z"), ...options });
}

interface Reply {
  readonly status: number;
  // The emulator answers with whatever JSON was stored.
  readonly body: {
    readonly kind?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly code?: number;
    readonly metadata: {
      readonly resourceVersion?: string;
      readonly continue?: string;
      readonly uid?: string;
      readonly creationTimestamp?: string;
    };
    readonly items?: readonly { readonly kind?: string; readonly metadata: { readonly name: string } }[];
    readonly spec?: unknown;
    readonly status?: unknown;
  };
}

async function ask(path: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(api.url + path, init);
  return { status: response.status, body: (await response.json()) as Reply["body"] };
}

const body = (value: unknown): string => JSON.stringify(value);
const service = (name: string, spec: unknown = { clusterIP: "10.0.0.1" }, labels: Record<string, string> = {}): unknown => ({
  kind: "Service",
  metadata: { name, namespace: "shop", labels },
  spec,
});
const names = ({ body: list }: Reply): readonly string[] => (list.items ?? []).map(({ metadata }) => metadata.name);

/** Open a watch and read `count` events as `TYPE name` (bookmarks: `BOOKMARK revision`). */
async function watch(query: string, count: number, act: () => void = () => undefined): Promise<readonly string[]> {
  const response = await fetch(`${api.url}/api/v1/services?watch=true&${query}`);
  act();
  const events: string[] = [];
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const event = JSON.parse(text.slice(0, end)) as { type: string; object: { code?: number; metadata: Record<string, string> } };
      text = text.slice(end + 1);
      const { name, resourceVersion } = event.object.metadata;
      events.push(`${event.type} ${name ?? event.object.code ?? resourceVersion}`);
      if (events.length === count) return events;
    }
  }
  return events;
}

describe("list and get", () => {
  it("sets what an API server sets, and lists items without their kind", async () => {
    await start();
    api.apply(service("b"));
    api.apply(service("a"));
    api.apply({ ...(service("c") as object), metadata: { name: "c" } });
    const all = await ask("/api/v1/services");
    expect(names(all)).toEqual(["c", "a", "b"]);
    expect([all.body.kind, all.body.items?.[0]?.kind]).toEqual(["ServiceList", undefined]);
    expect(names(await ask(SERVICES))).toEqual(["a", "b"]);
    const one = await ask(`${SERVICES}/a`);
    expect([one.body.kind, one.body.metadata.creationTimestamp]).toEqual(["Service", "2026-03-04T05:06:07Z"]);
    expect(one.body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(await ask(`${SERVICES}/x`)).toMatchObject({ status: 404, body: { reason: "NotFound", message: 'services "x" not found' } });
    expect((await ask("/api/v1/pods")).status).toBe(404);
  });

  it("pages from one revision, whatever happens in between, until that is compacted", async () => {
    await start();
    for (const name of ["a", "b", "c", "d", "e"]) api.apply(service(name));
    const first = await ask("/api/v1/services?limit=2");
    expect(names(first)).toEqual(["a", "b"]);
    api.delete("Service", "shop", "c");
    api.apply(service("bb"));
    const second = await ask(`/api/v1/services?limit=2&continue=${first.body.metadata.continue}`);
    expect(names(second)).toEqual(["c", "d"]);
    expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    api.compact();
    const late = await ask(`/api/v1/services?limit=2&continue=${second.body.metadata.continue}`);
    expect(late).toMatchObject({ status: 410, body: { reason: "Expired", code: 410 } });
    expect((await ask("/api/v1/services?continue=nonsense")).status).toBe(400);
    expect(names(await ask("/api/v1/services?limit=2&resourceVersion=0"))).toHaveLength(5);
  });

  it("knows revisions: not older than, from the future", async () => {
    await start();
    const { metadata } = api.apply(service("a"));
    api.apply(service("b"));
    expect(names(await ask(`/api/v1/services?resourceVersion=${metadata.resourceVersion}`))).toEqual(["a", "b"]);
    expect((await ask("/api/v1/services?resourceVersion=999999")).body.message).toContain("Too large resource version");
    expect((await ask("/api/v1/services?resourceVersion=x")).status).toBe(400);
  });

  it("selects by labels and fields", async () => {
    await start();
    api.apply(service("a", { clusterIP: "None" }, { app: "x" }));
    api.apply(service("b", { clusterIP: "10.0.0.1" }, { app: "y", tier: "" }));
    api.apply(service("c", {}, {}));
    const cases: readonly (readonly [query: string, expected: readonly string[]])[] = [
      ["labelSelector=app", ["a", "b"]],
      ["labelSelector=!app", ["c"]],
      ["labelSelector=!tier", ["a", "c"]],
      ["labelSelector=app%3Dx", ["a"]],
      ["labelSelector=app!%3Dx", ["b", "c"]],
      ["labelSelector=app%3Dx,!tier", ["a"]],
      ["fieldSelector=spec.clusterIP!%3DNone", ["b", "c"]],
      ["fieldSelector=metadata.name%3Da", ["a"]],
    ];
    for (const [query, expected] of cases) expect([query, names(await ask(`/api/v1/services?${query}`))]).toEqual([query, expected]);
    expect((await ask("/api/v1/services?fieldSelector=spec.ports%3Dx")).status).toBe(400);
    expect((await ask("/apis/discovery.k8s.io/v1/endpointslices?fieldSelector=spec.clusterIP%3Dx")).status).toBe(400);
    expect((await ask("/api/v1/services?labelSelector=%3D%3D")).status).toBe(400);
  });
});

describe("watch", () => {
  it("resumes from a revision, and shows objects entering and leaving the selection", async () => {
    await start();
    const { metadata } = api.apply(service("a"));
    api.apply(service("b"));
    const query = `resourceVersion=${metadata.resourceVersion}&labelSelector=!hidden`;
    const events = await watch(query, 5, () => {
      api.apply(service("a", {}, { hidden: "" }));
      api.apply(service("a", { x: 1 }, { hidden: "" }));
      api.apply(service("a"));
      api.apply(service("a", { x: 2 }));
      api.delete("Service", "shop", "b");
    });
    expect(events).toEqual(["ADDED b", "DELETED a", "ADDED a", "MODIFIED a", "DELETED b"]);
  });

  it("gives the objects as they are without a revision, and marks their end for watch-list", async () => {
    await start();
    api.apply(service("a"));
    expect(await watch("", 2, () => api.apply(service("b")))).toEqual(["ADDED a", "ADDED b"]);
    const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    expect(await watch(initial, 3)).toEqual(["ADDED a", "ADDED b", `BOOKMARK ${api.revision}`]);
    expect((await ask("/api/v1/services?watch=true&sendInitialEvents=true")).status).toBe(422);
    api.misbehave({ watchList: 422 });
    expect((await ask(`/api/v1/services?watch=true&${initial}`)).status).toBe(422);
  });

  it("answers 410 for a compacted revision, as an event, or as a status on command", async () => {
    await start();
    const { metadata } = api.apply(service("a"));
    api.compact();
    expect(await watch(`resourceVersion=${metadata.resourceVersion}`, 9)).toEqual(["ERROR 410"]);
    api.misbehave({ expiredAsStatus: true });
    expect((await ask(`/api/v1/services?watch=true&resourceVersion=${metadata.resourceVersion}`)).status).toBe(410);
  });

  it("forgets the older half of a long history", async () => {
    await start({ historyMax: 4 });
    const { metadata } = api.apply(service("a"));
    for (const name of ["b", "c", "d", "e"]) api.apply(service(name));
    expect(await watch(`resourceVersion=${metadata.resourceVersion}`, 9)).toEqual(["ERROR 410"]);
  });

  it("ends after timeoutSeconds and sends bookmarks to those who want them", async () => {
    await start({ bookmarkMs: 20 });
    expect(await watch("timeoutSeconds=1&resourceVersion=1000", 1)).toEqual([]);
    expect(await watch("allowWatchBookmarks=true&resourceVersion=1000", 1)).toEqual(["BOOKMARK 1000"]);
  });

  it("cuts and duplicates events on command", async () => {
    await start();
    api.misbehave({ duplicateEvents: true, times: 1 });
    expect(await watch("", 3, () => [api.apply(service("a")), api.apply(service("b"))])).toEqual(["ADDED a", "ADDED a", "ADDED b"]);
    api.misbehave({ truncateEvents: true });
    await expect(watch("resourceVersion=1001", 3, () => api.apply(service("c")))).rejects.toThrow("terminated");
  });
});

describe("writes", () => {
  it("create, with conflicts and mistakes where Kubernetes has them, and change no revision when nothing changes", async () => {
    await start();
    const post = (text: string, path: string = SERVICES): Promise<Reply> => ask(path, { method: "POST", headers: JSON_TYPE, body: text });
    const created = body({ metadata: { name: "a" }, spec: { x: 1 }, status: { no: 1 } });
    const made = await post(created);
    expect(made).toMatchObject({ status: 201, body: { kind: "Service", metadata: { namespace: "shop" }, spec: { x: 1 } } });
    expect(made.body.status).toBeUndefined();
    expect(await post(created)).toMatchObject({ status: 409, body: { reason: "AlreadyExists" } });
    const refused: readonly (readonly [text: string, status: number])[] = [
      ["{", 400],
      ["{}", 422],
      [body({ kind: "Node", metadata: { name: "b" } }), 400],
      [body({ metadata: { name: "b", namespace: "other" } }), 400],
    ];
    for (const [text, status] of refused) expect([text, (await post(text)).status]).toEqual([text, status]);
    for (const method of ["PUT", "PATCH", "DELETE"]) expect((await ask(`${SERVICES}/a`, { method })).status).toBe(405);
    const { revision } = api;
    api.apply({ kind: "Service", ...(JSON.parse(body(made.body)) as object) });
    expect(api.revision).toBe(revision);
    expect(() => api.apply({ kind: "Pod", metadata: { name: "a" } })).toThrow("[invalid_object]");
  });
});

describe("the server", () => {
  it("asks for its token, and for another after rotation", async () => {
    await start({ token: "one" });
    const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
    expect([(await ask("/api/v1/nodes")).status, (await ask("/api/v1/nodes", as("one"))).status]).toEqual([401, 200]);
    api.requireToken("two");
    expect([(await ask("/api/v1/nodes", as("one"))).status, (await ask("/api/v1/nodes", as("two"))).status]).toEqual([401, 200]);
  });

  it("refuses connections while paused and is back on the same port with everything it had", async () => {
    await start();
    api.apply(service("a"));
    const { url } = api;
    await api.pause();
    await expect(ask("/api/v1/services")).rejects.toThrow("fetch failed");
    await api.resume();
    expect(api.url).toBe(url);
    expect(names(await ask("/api/v1/services"))).toEqual(["a"]);
  });

  it("answers with the status it is told, as often as told, to whom told", async () => {
    await start();
    api.misbehave({ only: { kind: "Service", verb: "list" }, status: 429, retryAfterSeconds: 3, times: 1 });
    expect((await ask("/api/v1/nodes")).status).toBe(200);
    const refused = await fetch(`${api.url}/api/v1/services`);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3"]);
    await refused.text();
    expect((await ask("/api/v1/services")).status).toBe(200);
    const stop = api.misbehave({ status: 500 });
    expect((await ask("/api/v1/services")).body).toMatchObject({ kind: "Status", code: 500, reason: "InternalError" });
    stop();
    expect((await ask("/api/v1/services")).status).toBe(200);
  });

  it("leaves out the kinds it is told to, and answers the usual probes", async () => {
    await start({ without: ["ServiceCIDR"] });
    expect((await ask("/apis/networking.k8s.io/v1/servicecidrs")).status).toBe(404);
    expect(await (await fetch(`${api.url}/readyz`)).text()).toBe("ok");
    expect((await ask("/version")).status).toBe(200);
  });

  it("writes a kubeconfig that names it, its authority and its token", async () => {
    const authority = createAuthority("lab", Date.now());
    await start({ tls: { ...authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }), ca: authority.cert }, token: "secret" });
    const config = parse(api.kubeconfig()) as { clusters: { cluster: Record<string, string> }[]; users: { user: object }[] };
    expect(config.clusters[0]?.cluster["server"]).toBe(api.url);
    expect(Buffer.from(config.clusters[0]?.cluster["certificate-authority-data"] ?? "", "base64").toString()).toBe(authority.cert);
    expect(config.users[0]?.user).toEqual({ token: "secret" });
    expect(api.url).toMatch(/^https:/);
  });
});
