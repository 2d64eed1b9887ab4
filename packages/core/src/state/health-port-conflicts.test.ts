import { describe, expect, it } from "vitest";
import { rawService } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { createStoreView, upsertRaw } from "../testing/view.ts";

const LOCAL = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: 32_000 };

function withNodePort(name: string, nodePort: number, protocol = "TCP", spec: RawObject = {}): RawObject {
  return rawService(name, { type: "NodePort", ports: [{ name: "p", port: 80, nodePort, protocol }], ...spec });
}

describe("R-51 a health check node port that is another Service's node port", () => {
  it("is reported once, at both Services, until it is no longer both", () => {
    const { store, issues } = createStoreView([withNodePort("a", 32_000), rawService("b", LOCAL)]);
    const what = "its health check node port 32000 is also a node port of Service shop/a: load balancers that check it reach that Service";
    expect(issues).toMatchObject([{ object: "Service shop/b", what, events: [{ service: "shop/b" }, { service: "shop/a" }] }]);
    upsertRaw(store, rawService("b", { ...LOCAL, sessionAffinity: "ClientIP" }));
    expect([issues.length, [...store.issues()]]).toEqual([1, issues]);
    upsertRaw(store, withNodePort("a", 32_001));
    expect([...store.issues()]).toEqual([]);
    upsertRaw(store, withNodePort("a", 32_000));
    store.remove("Service", "shop", "b");
    expect([issues.length, [...store.issues()]]).toEqual([2, []]);
  });

  it("names the Service that has the port now", () => {
    const { store } = createStoreView([withNodePort("a", 32_000), rawService("b", LOCAL), withNodePort("c", 32_000)]);
    store.remove("Service", "shop", "a");
    expect([...store.issues()]).toMatchObject([{ object: "Service shop/b", events: [{ service: "shop/b" }, { service: "shop/c" }] }]);
  });

  it.each([
    ["its own node port", [withNodePort("a", 32_000, "TCP", LOCAL)]],
    ["another protocol's", [withNodePort("a", 32_000, "UDP"), rawService("b", LOCAL)]],
    ["of a Service that has no health check", [withNodePort("a", 32_000), rawService("b", { ...LOCAL, externalTrafficPolicy: "Cluster" })]],
  ])("but not %s", (_name, objects) => expect(createStoreView(objects).issues).toEqual([]));
});
