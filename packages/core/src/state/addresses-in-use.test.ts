import { describe, expect, it } from "vitest";
import type { ServicePort } from "../model/rows.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import type { StoreView, ViewShort } from "../testing/view.ts";
import { createStoreView, upsertRaw } from "../testing/view.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { ServiceTable } from "./service-table.ts";

const OLD = "2024-01-01T00:00:00Z";
const NEW = "2024-02-01T00:00:00Z";
const THIEF = "evil/thief:http/TCP";
const PORTS = [{ name: "http", port: 8080, protocol: "TCP" }];
const VICTIM = "10.1.2.9";

function victim(created: string | undefined, ip = VICTIM): RawObject {
  return rawSlice("web", [{ ip, node: "node2" }], created === undefined ? {} : { created });
}

function thief(...externalIPs: readonly string[]): RawObject {
  return rawService("thief", { clusterIP: "10.96.0.66", externalIPs, ports: PORTS }, { namespace: "evil", created: NEW });
}

function balanced(...ips: readonly string[]): RawObject {
  const ingress = ips.map((ip) => ({ ip }));
  return rawService("thief", { type: "LoadBalancer", clusterIP: "10.96.0.66", ports: PORTS }, { namespace: "evil", created: NEW, ingress });
}

/** The addresses that the thief has besides its cluster IP. */
function taken({ view, pull }: StoreView): readonly string[] {
  pull();
  return (view.rows.get(THIEF)?.destinations ?? []).flatMap(({ kind, address }) => (kind === "clusterIP" ? [] : [address]));
}

function cluster(objects: readonly RawObject[], short: ViewShort = {}): StoreView {
  return createStoreView([rawService("web"), ...objects], short);
}

const said = ({ issues }: StoreView): readonly string[] => issues.map(({ object, what }) => `${object}: ${what}`);

describe("R-73 an external IP that is another namespace's endpoint", () => {
  it("is left out if the slice is older, and comes back when the endpoint goes", () => {
    const state = cluster([victim(OLD), thief(VICTIM, "198.51.100.1")]);
    expect(taken(state)).toEqual(["198.51.100.1"]);
    expect(state.issues).toMatchObject([
      {
        object: `Service port ${THIEF}`,
        what: `an address it can't have is left out: ${VICTIM}:8080/TCP is an endpoint of Service shop/web`,
        hint: "give the Service an external IP that nothing else uses",
      },
    ]);
    expect(state.issues[0]?.events?.map(({ service, note }) => `${service} ${note}`)).toEqual([
      `evil/thief ${VICTIM}:8080/TCP is also an endpoint of Service shop/web: an endpoint has precedence; give one of them another address or port`,
      `shop/web ${VICTIM}:8080/TCP is also an external IP of Service evil/thief: an endpoint has precedence; give one of them another address or port`,
    ]);
    upsertRaw(state.store, victim(OLD, "10.1.2.10"));
    expect(taken(state)).toEqual([VICTIM, "198.51.100.1"]);
    upsertRaw(state.store, victim(OLD));
    expect(taken(state)).toEqual(["198.51.100.1"]);
  });

  it.each([[NEW], ["2024-03-01T00:00:00Z"]])("is reported and served if the slice is of %s, which is not older", (created) => {
    const state = cluster([victim(created), thief(VICTIM)]);
    expect(taken(state)).toEqual([VICTIM]);
    expect(said(state)).toEqual([
      `Service port ${THIEF}: an address that is in use is taken from what uses it: ${VICTIM}:8080/TCP is an endpoint of Service shop/web`,
    ]);
    expect([...state.view.issues()].map(({ hint }) => hint)).toEqual([
      "give the Service an address that nothing else uses; --strict-external-ips leaves external IPs in use out",
    ]);
    upsertRaw(state.store, thief());
    state.pull();
    expect([...state.view.issues()]).toEqual([]);
    expect(taken(cluster([victim(created), thief(VICTIM)], { allowedAddresses: { strictExternalIPs: true } }))).toEqual([]);
  });

  it("is served without a word in its own namespace, at another port, and in another protocol", () => {
    const own = { namespace: "evil" };
    const slice = { ...rawSlice("own", [{ ip: VICTIM }], own) };
    const udp = rawSlice("web", [{ ip: VICTIM }], {
      ports: [
        { name: "http", port: 8080, protocol: "UDP" },
        { name: "x", port: 80, protocol: "TCP" },
      ],
    });
    const state = cluster([slice, udp, thief(VICTIM)]);
    expect([taken(state), said(state)]).toEqual([[VICTIM], []]);
  });

  it("leaves the place to another Service, whatever their ages", () => {
    const second = rawService("own", { clusterIP: "10.96.0.67", externalIPs: [VICTIM], ports: PORTS }, { created: "2024-05-01T00:00:00Z" });
    const state = cluster([victim(OLD), thief(VICTIM), second]);
    expect(taken(state)).toEqual([]);
    expect(state.view.rows.get("shop/own:http/TCP")?.destinations.map(({ address }) => address)).toEqual(["10.96.0.67", VICTIM]);
  });

  it("is only reported as load-balancer IP, also where strict", () => {
    const state = cluster([victim(OLD), balanced(VICTIM)], { allowedAddresses: { strictExternalIPs: true } });
    expect(taken(state)).toEqual([VICTIM]);
    expect(said(state)).toEqual([
      `Service port ${THIEF}: an address that is in use is taken from what uses it: ${VICTIM}:8080/TCP is an endpoint of Service shop/web`,
    ]);
  });
});

describe("R-73 an external IP that a node or its pods have", () => {
  const NODES = [
    rawNode("node1", { podCIDRs: ["10.1.1.0/24"] }),
    rawNode("node2", { addresses: ["172.18.0.2"], podCIDRs: ["10.1.2.0/24"] }),
  ];

  it("is left out in the pod range of this node, and reported in that of another", () => {
    const state = cluster([...NODES, thief("10.1.1.9", VICTIM)]);
    expect(taken(state)).toEqual([VICTIM]);
    expect(said(state)).toEqual([
      `Service port ${THIEF}: an address it can't have is left out: 10.1.1.9:8080/TCP is in the pod range 10.1.1.0/24 of Node node1`,
      `Service port ${THIEF}: an address that is in use is taken from what uses it: ${VICTIM}:8080/TCP is in the pod range 10.1.2.0/24 of Node node2`,
    ]);
    upsertRaw(state.store, rawNode("node1", { podCIDRs: ["10.1.3.0/24"] }));
    expect(taken(state)).toEqual(["10.1.1.9", VICTIM]);
  });

  it("is left out for each node that asks, of rows that are made and kept once for all nodes", () => {
    const { store } = cluster([...NODES, thief("10.1.1.9", VICTIM)]);
    const table = new ServiceTable(store, { family: "IPv4" });
    table.update();
    const rowAt = (nodeName: string): ServicePort | undefined =>
      table
        .view({ nodeName, settings: DEFAULT_SETTINGS })
        .changesSince(undefined)
        ?.set.find(({ key }) => key === THIEF);
    const found = ["node1", "node2", "node3", "node1"].map(rowAt);
    const addresses = found.map((row) => row?.destinations.map(({ address }) => address).slice(1));
    expect(addresses).toEqual([[VICTIM], ["10.1.1.9"], ["10.1.1.9", VICTIM], [VICTIM]]);
    expect(new Set(found.map((row) => row?.destinations[0])).size).toBe(1);
    expect(found[3]).not.toBe(found[0]);
    expect(rowAt("node3")).toBe(found[2]);
  });

  it("is reported as a node's address; strict, all of them are left out, and load-balancer IPs are not", () => {
    const state = cluster([...NODES, thief("172.18.0.2")]);
    expect([taken(state), said(state)]).toEqual([
      ["172.18.0.2"],
      [`Service port ${THIEF}: an address that is in use is taken from what uses it: 172.18.0.2:8080/TCP is an address of a Node`],
    ]);
    const strict = { allowedAddresses: { strictExternalIPs: true } };
    expect(taken(cluster([...NODES, thief("172.18.0.2", VICTIM, "198.51.100.1")], strict))).toEqual(["198.51.100.1"]);
    expect(taken(cluster([...NODES, balanced("172.18.0.2", VICTIM)], strict))).toEqual(["172.18.0.2", VICTIM]);
  });
});

describe("R-74 an external IP that is the API server's", () => {
  const SERVER = "192.0.2.100";
  const LEFT_OUT = `Service port ${THIEF}: an address it can't have is left out: ${SERVER}:8080/TCP is where proxies reach the API server`;

  it("is left out from when the source has the address on, whatever the ages; its other ports are free", () => {
    const state = cluster([thief(SERVER)]);
    state.store.noteSourceAddresses([`${SERVER} 6443`]);
    expect([taken(state), said(state)]).toEqual([[SERVER], []]);
    state.store.noteSourceAddresses([`${SERVER} 8080`]);
    expect([taken(state), said(state)]).toEqual([[], [LEFT_OUT]]);
  });

  it("is left out as an endpoint of default/kubernetes, from when the slice is known until it goes", () => {
    const state = cluster([thief(SERVER)]);
    expect(taken(state)).toEqual([SERVER]);
    upsertRaw(state.store, rawSlice("kubernetes", [{ ip: SERVER }], { namespace: "default", created: "2024-07-01T00:00:00Z" }));
    expect([taken(state), said(state)]).toEqual([[], [LEFT_OUT]]);
    state.store.remove("EndpointSlice", "default", "kubernetes-1");
    expect(taken(state)).toEqual([SERVER]);
  });

  it("is only reported as load-balancer IP", () => {
    const state = cluster([balanced(SERVER)]);
    state.store.noteSourceAddresses([`${SERVER} 8080`]);
    expect(taken(state)).toEqual([SERVER]);
    expect(state.issues).toMatchObject([{ hint: "give the Service an address that nothing else uses" }]);
  });

  it("is remembered for 64 addresses, the latest", () => {
    const { store } = cluster([]);
    for (let index = 0; index < 100; index++) store.noteSourceAddresses([`192.0.2.${index} 443`, "198.51.100.1 443"]);
    expect([...store.sourceAddresses].toSorted()).toEqual(
      [...Array.from({ length: 63 }, (_, index) => `192.0.2.${index + 37} 443`), "198.51.100.1 443"].toSorted(),
    );
  });
});
