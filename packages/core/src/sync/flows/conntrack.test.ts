import { describe, expect, it } from "vitest";
import { flowsToForget } from "./conntrack.ts";
import type { ServicePort } from "../../model/rows.ts";
import { rawService, rawSlice } from "../../testing/objects.ts";
import type { EndpointShort, RawObject } from "../../testing/objects.ts";
import { rowsOf } from "../../testing/view.ts";

const DNS = [{ name: "dns", port: 53, protocol: "UDP" }];
const TO_5353 = [{ name: "dns", port: 5353, protocol: "UDP" }];
const A: EndpointShort = { ip: "10.1.1.1" };
const B: EndpointShort = { ip: "10.1.1.2" };

function row(endpoints: readonly EndpointShort[], spec: RawObject = {}): ServicePort {
  const objects = [rawService("dns", { ports: DNS, ...spec }), rawSlice("dns", endpoints, { ports: TO_5353 })];
  return [...rowsOf(objects).values()][0] as ServicePort;
}

/** A change in short: which flows go, as `address:port keep[…] only[…]`. */
function flows(before: ServicePort | undefined, after: ServicePort | undefined): readonly string[] {
  return flowsToForget([{ before, after }]).map(
    ({ address, port, keep, only }) =>
      `${address === "" ? "*" : address}:${port} keep[${keep.join()}]${only === undefined ? "" : ` only[${only.join()}]`}`,
  );
}

const NODE_PORT = { type: "NodePort", ports: [{ ...DNS[0], nodePort: 30053 }] };
const EXTERNAL = { externalIPs: ["198.51.100.1"] };

describe("R-41 flows to endpoints that no longer serve", () => {
  it.each([
    ["one of two goes", row([A, B]), row([B]), ["10.96.0.1:53 keep[10.1.1.2:5353]"]],
    ["it stops serving", row([A, B]), row([{ ...A, ready: false, serving: false }, B]), ["10.96.0.1:53 keep[10.1.1.2:5353]"]],
    ["replaced", row([A]), row([B]), ["10.96.0.1:53 keep[10.1.1.2:5353]"]],
    [
      "on every address",
      row([A, B], EXTERNAL),
      row([B], EXTERNAL),
      ["10.96.0.1:53 keep[10.1.1.2:5353]", "198.51.100.1:53 keep[10.1.1.2:5353]"],
    ],
    ["on node ports", row([A, B], NODE_PORT), row([B], NODE_PORT), ["10.96.0.1:53 keep[10.1.1.2:5353]", "*:30053 keep[10.1.1.2:5353]"]],
  ])("%s", (_name, before, after, expected) => expect(flows(before, after)).toEqual(expected));
});

describe("R-42 flows that are still right are let be", () => {
  const local = { internalTrafficPolicy: "Local" };
  it.each([
    ["nothing changed", row([A]), row([A])],
    ["terminating but serving", row([A, B]), row([{ ...A, ready: false, serving: true, terminating: true }, B])],
    ["serving but not ready, and not terminating", row([A, B]), row([{ ...A, ready: false, serving: true }, B])],
    ["not ready, and nothing said of serving, as a mirrored slice has it", row([A]), row([{ ...A, ready: false }])],
    ["the policy changed", row([A]), row([A], local)],
    ["an address without a flow of ours went", row([], EXTERNAL), row([])],
    ["a row without endpoints went", row([]), undefined],
    ["nothing at all", undefined, undefined],
  ])("%s", (_name, before, after) => expect(flows(before, after)).toEqual([]));

  it.each(["TCP", "SCTP"])("%s is never touched", (protocol) => {
    const of = (endpoints: readonly EndpointShort[]): ServicePort =>
      [
        ...rowsOf([
          rawService("web", { ports: [{ name: "x", port: 1, protocol }] }),
          rawSlice("web", endpoints, { ports: [{ name: "x", port: 2, protocol }] }),
        ]).values(),
      ][0] as ServicePort;
    expect([...flows(of([A, B]), of([B])), ...flows(of([A]), undefined), ...flows(undefined, of([A]))]).toEqual([]);
  });

  it("a restart keeps flows to the endpoints that serve", () => {
    expect(flows(undefined, row([A, B]))).toEqual(["10.96.0.1:53 keep[10.1.1.1:5353,10.1.1.2:5353]"]);
  });
});

describe("R-43 clients that talk into the void", () => {
  it.each([
    ["the first endpoint frees them", row([]), row([A]), ["10.96.0.1:53 keep[10.1.1.1:5353]"]],
    ["so does a new address", row([A]), row([A], EXTERNAL), ["198.51.100.1:53 keep[10.1.1.1:5353]"]],
    ["and a new Service", undefined, row([A]), ["10.96.0.1:53 keep[10.1.1.1:5353]"]],
    ["the last endpoint went: nobody is kept", row([A]), row([]), ["10.96.0.1:53 keep[]"]],
    [
      "on a node port only its own endpoints' flows go",
      row([A], NODE_PORT),
      row([], NODE_PORT),
      ["10.96.0.1:53 keep[]", "*:30053 keep[] only[10.1.1.1:5353]"],
    ],
    ["a node port that never had an endpoint is nobody's business", undefined, row([], NODE_PORT), ["10.96.0.1:53 keep[]"]],
  ])("%s", (_name, before, after, expected) => expect(flows(before, after)).toEqual(expected));
});

describe("R-44 addresses that are given up", () => {
  it.each([
    [
      "the Service goes: only flows its endpoints answered",
      row([A, B]),
      undefined,
      ["10.96.0.1:53 keep[] only[10.1.1.1:5353,10.1.1.2:5353]"],
    ],
    ["one address goes", row([A], EXTERNAL), row([A]), ["198.51.100.1:53 keep[] only[10.1.1.1:5353]"]],
    ["the node port goes", row([A], NODE_PORT), row([A]), ["*:30053 keep[] only[10.1.1.1:5353]"]],
    [
      "the port changes",
      row([A]),
      row([A], { ports: [{ ...DNS[0], port: 54 }] }),
      ["10.96.0.1:54 keep[10.1.1.1:5353]", "10.96.0.1:53 keep[] only[10.1.1.1:5353]"],
    ],
    [
      "an address and an endpoint at once",
      row([A, B], EXTERNAL),
      row([B]),
      ["10.96.0.1:53 keep[10.1.1.2:5353]", "198.51.100.1:53 keep[] only[10.1.1.1:5353,10.1.1.2:5353]"],
    ],
  ])("%s", (_name, before, after, expected) => expect(flows(before, after)).toEqual(expected));
});

describe("R-45 an address that moves to another row", () => {
  it("is judged by its new row alone: shared endpoints keep their flows", () => {
    const before = row([A, B], EXTERNAL);
    const taker = { ...row([B], EXTERNAL), key: "shop/other:dns/UDP", destinations: row([B], EXTERNAL).destinations.slice(1) };
    const found = flowsToForget([
      { before, after: row([A, B]) },
      { before: undefined, after: taker },
    ]);
    expect(found).toEqual([{ protocol: "UDP", address: "198.51.100.1", port: 53, keep: ["10.1.1.2:5353"] }]);
  });
});

describe("R-43 R-45 a port that is renamed is another row", () => {
  const renamed = (endpoints: readonly EndpointShort[]): ServicePort => ({ ...row(endpoints, NODE_PORT), key: "shop/dns:new/UDP" });
  it.each([
    ["no endpoint is left: flows to the former ones go from the node port, too", [], "*:30053 keep[] only[10.1.1.1:5353,10.1.1.2:5353]"],
    ["one is left", [B], "*:30053 keep[10.1.1.2:5353]"],
  ])("%s", (_name, endpoints, expected) => {
    const found = flowsToForget([
      { before: row([A, B], NODE_PORT), after: undefined },
      { before: undefined, after: renamed(endpoints) },
    ]);
    const texts = found.map(({ port, keep, only }) => `*:${port} keep[${keep.join()}]${only === undefined ? "" : ` only[${only.join()}]`}`);
    expect(texts.filter((text) => text.includes("30053"))).toEqual([expected]);
  });
});

describe("the form of endpoints", () => {
  it("IPv6 in brackets", () => {
    const objects = [
      rawService("dns", { clusterIP: "fd00:96::a", ports: DNS }),
      rawSlice("dns", [{ ip: "fd00:1::1" }], { addressType: "IPv6", ports: TO_5353 }),
    ];
    const after = [...rowsOf(objects, { family: "IPv6" }).values()][0];
    expect(flowsToForget([{ before: undefined, after }])).toEqual([
      { protocol: "UDP", address: "fd00:96::a", port: 53, keep: ["[fd00:1::1]:5353"] },
    ]);
  });
});
