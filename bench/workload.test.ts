import { NodeView } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createStore, fillStore, NODE_VIEW } from "./subject.ts";
import { clusterIP, endpointsOf, parseShape, serviceObject, shapeText, sliceObject } from "./workload.ts";

describe("parseShape", () => {
  it("reads services and endpoints", () => expect(parseShape("45000x1")).toEqual({ services: 45_000, endpoints: 1 }));
  it("takes ten endpoints for granted", () => expect(parseShape("100")).toEqual({ services: 100, endpoints: 10 }));
  it.each(["", "0", "10x0", "10x65", "200001", "x5", "10x1x1", "-1", "1e3"])("refuses %o", (text) => {
    expect(() => parseShape(text)).toThrow(RangeError);
  });
  it("is written for people", () => expect(shapeText({ services: 10_000, endpoints: 10 })).toBe("10,000 x 10"));
});

describe("workload", () => {
  const shape = { services: 300, endpoints: 10 };

  it("becomes one row per service with all its endpoints, nothing reported", async () => {
    const store = createStore();
    const view = new NodeView(store, NODE_VIEW);
    await fillStore(store, shape);
    const rows = view.pull()?.set ?? [];
    expect(rows).toHaveLength(shape.services);
    expect(new Set(rows.map((row) => row.endpoints.length))).toEqual(new Set([shape.endpoints]));
    expect(view.pull()).toBeUndefined();
  });

  it("gives no address twice", () => {
    const indexes = Array.from({ length: 1000 }, (_, index) => index);
    const addresses = indexes.flatMap((index) => [
      clusterIP(index),
      ...endpointsOf(index, { services: 1000, endpoints: 50 }).map(({ ip }) => ip),
    ]);
    expect(new Set(addresses).size).toBe(51_000);
  });

  it("gives every service the same endpoints when they are shared", () => {
    const shared = { services: 10, endpoints: 2, shared: true };
    expect(endpointsOf(9, shared).map(({ ip }) => ip)).toEqual(["11.0.0.1", "11.0.0.2"]);
  });

  it.each([
    ["a missing endpoint", sliceObject(7, shape, { missing: 3 })],
    ["an endpoint that isn't ready", sliceObject(7, shape, { unready: 3 })],
    ["another port", serviceObject(7, 81)],
  ])("changes exactly one row by %s, and back", async (_name, object) => {
    const store = createStore();
    const view = new NodeView(store, NODE_VIEW);
    await fillStore(store, shape);
    view.pull();
    const isService = object["kind"] === "Service";
    store.upsert(isService ? "Service" : "EndpointSlice", object);
    expect(view.pull()?.set.map(({ key }) => key)).toEqual(["bench/svc-7:http/TCP"]);
    store.upsert(isService ? "Service" : "EndpointSlice", isService ? serviceObject(7) : sliceObject(7, shape));
    expect(view.pull()?.set.map(({ key }) => key)).toEqual(["bench/svc-7:http/TCP"]);
  });
});
