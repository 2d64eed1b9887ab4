import { describe, expect, it } from "vitest";
import type { ServicePort } from "../../model/rows.ts";
import { rawNode, rawService, rawSlice } from "../../testing/objects.ts";
import type { RawObject } from "../../testing/objects.ts";
import { createStoreView } from "../../testing/view.ts";
import { WaitingRows } from "./waiting-rows.ts";

/** The rows of one Service. */
function rowsOf(namespace: string, name: string, spec: RawObject, endpoints = 0): readonly ServicePort[] {
  const places = Array.from({ length: endpoints }, (_, at) => ({ ip: `10.1.${at >> 8}.${at & 255}` }));
  const objects = [rawNode("node1", {}), rawService(name, spec, { namespace }), rawSlice(name, places, { namespace })];
  return createStoreView(objects).pull()?.set ?? [];
}

/** The row of a Service with this external IP. */
function row(namespace: string, name: string, ip?: string, endpoints = 0): ServicePort {
  const [only] = rowsOf(
    namespace,
    name,
    { clusterIP: `10.96.${namespace.charCodeAt(0)}.${name.slice(1)}`, ...(ip === undefined ? {} : { externalIPs: [ip] }) },
    endpoints,
  );
  return only as ServicePort;
}

function waiting(...rows: readonly ServicePort[]): WaitingRows {
  const queue = new WaitingRows();
  for (const one of rows) queue.add(one.key, undefined, one);
  return queue;
}

/** The Services of each turn until nothing waits. */
function turnsOf(queue: WaitingRows, entriesMax: number): readonly string[] {
  const turns: string[] = [];
  while (queue.size > 0)
    turns.push(
      queue
        .take(entriesMax)
        .keys.map((key) => key.slice(0, key.indexOf(":")))
        .join(" "),
    );
  return turns;
}

describe("rows that wait", () => {
  it("are taken of one namespace after the other, however many wait of another", () => {
    const queue = waiting(row("evil", "s1"), row("evil", "s2"), row("evil", "s3"), row("evil", "s4"), row("shop", "s1"), row("till", "s1"));
    expect(turnsOf(queue, 5)).toEqual(["evil/s1 shop/s1", "till/s1 evil/s2", "evil/s3 evil/s4"]);
  });

  it("keep their place when they change again", () => {
    const queue = waiting(row("evil", "s1"), row("evil", "s2"));
    queue.add("evil/s1:http/TCP", undefined, row("evil", "s1", undefined, 3));
    expect(turnsOf(queue, 1)).toEqual(["evil/s1", "evil/s2"]);
  });

  it("are all of a Service at once", () => {
    const ports = [1, 2, 3].map((port) => ({ name: `p${port}`, port }));
    expect(turnsOf(waiting(...rowsOf("shop", "s1", { ports }), row("shop", "s2")), 1)).toEqual(["shop/s1 shop/s1 shop/s1", "shop/s2"]);
  });

  it("come though they are more than a turn, and hold up others for one turn", () => {
    const queue = waiting(row("evil", "s1", undefined, 500), row("evil", "s2", undefined, 500), row("shop", "s1"), row("shop", "s2"));
    expect(turnsOf(queue, 10)).toEqual(["evil/s1", "shop/s1 shop/s2", "evil/s2"]);
  });

  it("are as much work as they have source ranges", () => {
    const [plain, ranged] = [row("evil", "s1"), row("shop", "s1")];
    const destinations = ranged.destinations.map((one) => ({ ...one, sourceRanges: ["10.0.0.0/8", "192.0.2.0/24"] }));
    expect(waiting(plain, { ...ranged, destinations }).take(10)).toEqual({ keys: [plain.key, ranged.key], entries: 6 });
  });

  it("are taken together where an address passes from one to the other, in whichever namespace and order", () => {
    const queue = waiting(row("evil", "s9"));
    const [a, b, c] = [row("evil", "s1", "198.51.100.1"), row("shop", "s1", "198.51.100.1"), row("shop", "s3", "198.51.100.3")];
    queue.add(a.key, a, row("evil", "s1", "198.51.100.2"));
    queue.add(b.key, row("shop", "s1"), b);
    queue.add(c.key, c, row("shop", "s3", "198.51.100.2"));
    queue.add("shop/s2:http/TCP", undefined, row("shop", "s2"));
    expect(turnsOf(queue, 1)).toEqual(["evil/s9", "shop/s1 evil/s1 shop/s3", "shop/s2"]);
  });

  it("are taken together where a node port takes the place of an external IP that is the node's own address", () => {
    const queue = new WaitingRows();
    const [port] = rowsOf("shop", "s1", { clusterIP: "10.96.9.9", type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] });
    const [thief] = rowsOf("evil", "s1", {
      clusterIP: "10.96.9.8",
      externalIPs: ["172.18.0.9"],
      ports: [{ name: "http", port: 30080 }],
    });
    const [none] = rowsOf("evil", "s1", { clusterIP: "10.96.9.8", ports: [{ name: "http", port: 30080 }] });
    queue.add("evil/s1:http/TCP", thief, none, ["172.18.0.9"]);
    queue.add("shop/s1:http/TCP", undefined, port, ["172.18.0.9"]);
    expect(turnsOf(queue, 1)).toEqual(["evil/s1 shop/s1"]);
  });

  it("are not taken together for an address that a later change left alone", () => {
    const queue = new WaitingRows();
    const a = row("evil", "s1", "198.51.100.1");
    queue.add(a.key, a, row("evil", "s1"));
    queue.add("shop/s1:http/TCP", undefined, row("shop", "s1", "198.51.100.1"));
    queue.add(a.key, row("evil", "s1"), row("evil", "s1", "198.51.100.1", 1));
    expect(turnsOf(queue, 1)).toEqual(["evil/s1", "shop/s1"]);
  });

  it("are forgotten one by one", () => {
    const queue = waiting(row("evil", "s1", "198.51.100.1"), row("shop", "s1"));
    queue.delete("evil/s1:http/TCP");
    expect([queue.has("evil/s1:http/TCP"), queue.size]).toEqual([false, 1]);
    expect([...queue.before()]).toEqual([["shop/s1:http/TCP", undefined]]);
  });
});
