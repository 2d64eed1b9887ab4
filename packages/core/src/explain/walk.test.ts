import { describe, expect, it } from "vitest";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawNode, rawService, rawSlice } from "../testing/index.ts";
import type { RawObject } from "../testing/index.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";
import { walkPacket } from "./walk.ts";
import type { Walk } from "./walk.ts";

const POD = "10.1.1.6";
const LB = "192.0.2.9";
const ENDPOINTS = [
  { ip: "10.1.1.5", node: "node1" },
  { ip: "10.1.2.5", node: "node2" },
];
const PORTS = [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_081 }];
const web = (fields: RawObject = {}): RawObject =>
  rawService("web", { clusterIP: "10.96.0.10", type: "LoadBalancer", ports: PORTS, ...fields });

interface Asked extends Partial<AskedPacket> {
  readonly objects: readonly RawObject[];
  readonly isBySockets?: boolean;
  readonly own?: readonly string[];
  readonly unserved?: ExplainedState["unserved"];
}

function walk({ objects, isBySockets = false, own = [], unserved, ...packet }: Asked): Walk {
  const state = explainedState([rawNode("node2", { addresses: ["172.18.0.2"], podCIDRs: ["10.1.2.0/24"] }), ...objects], {
    hostAddresses: ["127.0.0.1", "172.18.0.1", ...own],
    ...(isBySockets ? { variants: { localClients: "sockets" } } : {}),
    ...(unserved === undefined ? {} : { unserved }),
  });
  return walkPacket(state, askedPacket(packet));
}

const says = ({ steps }: Walk): string => steps.map((step) => step.says).join("\n");

describe("where the client's socket is served", () => {
  const objects = [web(), rawSlice("web", ENDPOINTS)];

  it("no packet has the Service's address, and nobody rewrites its source", () => {
    const found = walk({ objects, isBySockets: true });
    expect(says(found)).toContain(`translated at the socket: the packet leaves as ${POD} -> 10.1.1.5:8080 (assumed: `);
    expect(found.fate).toMatchObject({ is: "forward", at: "socket" });
    expect(walk({ objects, isBySockets: true, source: "172.18.0.1", device: "" }).fate).toMatchObject({ at: "socket" });
  });

  it.each<readonly [string, Asked]>([
    ["a client outside", { objects, isBySockets: true, source: "203.0.113.1", device: "eth0" }],
    ["a pod of another node", { objects, isBySockets: true, source: "10.1.2.6", device: "eth0" }],
    ["a backend that serves packets", { objects }],
    [
      "a pod whom source ranges may keep out",
      {
        objects: [
          web({ loadBalancerSourceRanges: ["10.1.1.0/28"], status: { loadBalancer: { ingress: [{ ip: LB }] } } }),
          rawSlice("web", ENDPOINTS),
        ],
        isBySockets: true,
        destination: LB,
      },
    ],
  ])("packets are served of %s", (_name, asked) => {
    const { fate } = walk(asked);
    expect(fate.is === "forward" ? fate.at : undefined).toBeUndefined();
  });
});

it("a cluster IP that is on a device of this host is told from a node port", () => {
  const objects = [web(), rawSlice("web", ENDPOINTS)];
  expect(walk({ objects, own: ["10.96.0.10"] }).fate).toMatchObject({ isHostAddress: true, isClusterIP: true });
  // Its own address is no pod's, though pods in the host's network have it.
  const senders = ["10.1.1.5", POD, "10.1.2.5"].map((source) => walk({ objects, source }).fate);
  expect(senders.map((fate) => fate.is === "forward" && fate.isSenderHere === true)).toEqual([true, false, false]);
  const { fate: own } = walk({ objects, source: "10.1.1.5", own: ["10.1.1.5"] });
  expect(own).not.toHaveProperty("isSenderHere");
  expect(walk({ objects }).fate).not.toHaveProperty("isHostAddress");
});

describe("a policy Local", () => {
  const service = web({ internalTrafficPolicy: "Local" });

  it("names the pod here that is not ready", () => {
    const [here, there] = ENDPOINTS;
    const found = walk({
      objects: [
        service,
        rawSlice("web", [
          { ...here, ip: "10.1.1.5", ready: false },
          { ip: "10.1.2.5", ...there },
        ]),
      ],
    });
    expect(found.causes[0]?.says).toBe(
      "Service shop/web:http has internalTrafficPolicy Local, and its usable endpoints are elsewhere: on node2, not on node1; 10.1.1.5 is here and not ready",
    );
    expect(found.causes[0]?.fix).toBe("see why the pod here is not ready, or set internalTrafficPolicy: Cluster");
  });

  it("does not say of all endpoints what holds for those here", () => {
    const ending = { ip: "10.1.1.5", node: "node1", ready: false, serving: true, terminating: true };
    expect(says(walk({ objects: [service, rawSlice("web", [ending, { ip: "10.1.2.5", node: "node2" }])] }))).toContain(
      "no endpoint on this node is ready, so those that terminate",
    );
    expect(says(walk({ objects: [web(), rawSlice("web", [ending])] }))).toContain("no endpoint is ready, so those that terminate");
  });
});

describe("an endpoint that is a Service's address", () => {
  const other = rawService("other", { clusterIP: "10.96.0.11", ports: [{ name: "http", port: 8080, protocol: "TCP" }] });
  const objects = [web(), other, rawSlice("web", [...ENDPOINTS, { ip: "10.96.0.11", node: "node1" }])];

  it("is named", () => {
    const found = walk({ objects });
    expect(found.causes[0]).toMatchObject({ id: "service_endpoint" });
    expect(found.causes[0]?.says).toContain("10.96.0.11:8080 is the cluster IP of Service shop/other");
    expect(found.fate).toMatchObject({ endpoints: [{}, {}, { ip: "10.96.0.11", isServiceAddress: true }] });
    expect(walk({ objects: [web(), rawSlice("web", ENDPOINTS)] }).causes).toEqual([]);
  });

  it("is none where a device of this host has it", () => {
    expect(walk({ objects, own: ["10.96.0.11"] }).causes.map(({ id }) => id)).not.toContain("service_endpoint");
  });
});

describe("a device by which nothing is served", () => {
  const unserved = (device: string): string | undefined =>
    device === "" ? "only below /x" : device === "eth1" ? "eth1 carries none" : undefined;
  const asked = { objects: [web(), rawSlice("web", ENDPOINTS)], source: "203.0.113.1", unserved };

  it("is to blame, and the packet goes on as it is", () => {
    const found = walk({ ...asked, device: "eth1" });
    expect(found.causes).toMatchObject([{ id: "device_unserved", says: "eth1 carries none" }]);
    expect([found.fate, says(found)]).toEqual([{ is: "pass" }, expect.stringContaining("eth1 carries none: it goes on as it is")]);
    expect(walk({ ...asked, device: "eth0" }).causes).toEqual([]);
  });

  it("is a guess where the packet is only taken to come in there", () => {
    const { causes, fate } = walk({ ...asked, device: "eth1", isDeviceAssumed: true });
    expect([fate.is, causes]).toMatchObject(["forward", [{ id: "device_unserved", isSure: false }]]);
  });

  it("matters for no client whose socket is served, and whose sockets are is said", () => {
    const found = walk({ ...asked, source: "172.18.0.1", device: "", isBySockets: true });
    expect([found.causes, says(found)]).toEqual([[], expect.stringContaining("10.1.1.5:8080 (only below /x)")]);
    expect(walk({ ...asked, source: POD, device: "eth1", isBySockets: true }).causes).toEqual([]);
  });
});
