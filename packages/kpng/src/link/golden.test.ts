import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";

/** The vectors of test/golden/kpng/messages.txt, by name. */
const VECTORS = new Map(
  readFileSync(new URL("../../test/golden/messages.txt", import.meta.url), "utf8")
    .split(/^== /m)
    .slice(1)
    .map((block) => {
      const [head = "", ...lines] = block.split("\n");
      const hex = lines.filter((line) => /^[0-9a-f]+$/.test(line)).join("");
      return [head.slice(0, head.indexOf(" ")), hex] as const;
    }),
);

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

interface Case {
  readonly name: string;
  readonly encoded: string;
  readonly decoded: unknown;
  readonly message: unknown;
}

/** One message, encoded by us, and the vector's bytes, read by us. */
function vector<T>(name: string, codec: Codec<T>, message: T): Case {
  const bytes = Buffer.from(VECTORS.get(name) ?? "ff", "hex");
  return { name, encoded: Buffer.from(codec.encode(message).finish()).toString("hex"), decoded: codec.decode(bytes), message };
}

const none: localv1.IPSet = { V4: [], V6: [] };
const set = (...V4: string[]): localv1.IPSet => ({ V4, V6: [] });
const port: localv1.PortMapping = { Name: "", Protocol: 1, Port: 0, NodePort: 0, TargetPort: 0, TargetPortName: "" };
const webPorts = [
  { Name: "dns", Port: 1053 },
  { Name: "http", Port: 8080 },
];
const empty = localv1.Service.decode(new Uint8Array());

const db: localv1.Service = {
  ...empty,
  Namespace: "shop",
  Name: "db",
  Type: "ClusterIP",
  IPs: { ClusterIPs: set("10.96.0.20"), ExternalIPs: none, Headless: false, LoadBalancerIPs: none },
  Ports: [{ ...port, Port: 5432, TargetPort: 5433 }],
};
const web: localv1.Service = {
  ...empty,
  Namespace: "shop",
  Name: "web",
  Type: "LoadBalancer",
  IPs: {
    ClusterIPs: { V4: ["10.96.0.10"], V6: ["fd00:96::10"] },
    ExternalIPs: set("192.0.2.10"),
    Headless: false,
    LoadBalancerIPs: set("198.51.100.10", "198.51.100.9"),
  },
  Ports: [
    { ...port, Name: "dns", Protocol: 2, Port: 53, NodePort: 30_053, TargetPort: 1053 },
    { ...port, Name: "http", Port: 80, NodePort: 30_080, TargetPort: 8080 },
  ],
  ExternalTrafficToLocal: true,
  IPFilters: [{ TargetIPs: set("198.51.100.10", "198.51.100.9"), SourceRanges: ["203.0.113.0/24"] }],
  SessionAffinity: { $case: "ClientIP", value: { TimeoutSeconds: 10_800 } },
  HealthCheckNodePort: 32_000,
};
const withTheRest: localv1.Service = {
  ...db,
  MapIP: true,
  InternalTrafficToLocal: true,
  IPs: { ...(db.IPs ?? { ClusterIPs: none, ExternalIPs: none, LoadBalancerIPs: none }), Headless: true },
  Ports: [...db.Ports, { ...port, Name: "s", Protocol: 3, Port: 65_535, TargetPortName: "named" }],
  // In the order of their bytes, as deterministic encoders write them.
  Labels: new Map([
    ["10", "x"],
    ["9", "y"],
    ["a", "1"],
    ["b", "2"],
  ]),
  Annotations: new Map([
    ["A", "2"],
    ["z", "1"],
  ]),
};
const op = (value: localv1.OpItem["Op"]): localv1.OpItem => ({ Op: value });
const endpoint: localv1.Endpoint = { Hostname: "", IPs: set("10.1.1.1"), Local: false, PortOverrides: webPorts, Scopes: undefined };
const info = globalv1.EndpointInfo.decode(new Uint8Array());

const CASES: readonly Case[] = [
  vector("watch-req", localv1.WatchReq, { NodeName: "node1" }),
  vector("watch-req-of-nobody", localv1.WatchReq, { NodeName: "" }),
  vector("global-watch-req", globalv1.GlobalWatchReq, {}),
  vector("sync-as-kpng-writes-it", localv1.OpItem, op({ $case: "Sync", value: {} })),
  vector("sync-with-an-empty-op", localv1.OpItem, op({ $case: "Sync", value: {} })),
  vector("reset-as-kpng-writes-it", localv1.OpItem, op({ $case: "Reset", value: {} })),
  vector("reset-with-an-empty-op", localv1.OpItem, op({ $case: "Reset", value: {} })),
  vector("op-of-no-kind", localv1.OpItem, op(undefined)),
  vector(
    "set",
    localv1.OpItem,
    op({ $case: "Set", value: { Ref: { Set: 1, Path: "shop/db" }, Bytes: Buffer.from(localv1.Service.encode(db).finish()) } }),
  ),
  vector("set-of-nothing", localv1.OpItem, op({ $case: "Set", value: { Ref: undefined, Bytes: Buffer.alloc(0) } })),
  vector("delete", localv1.OpItem, op({ $case: "Delete", value: { Set: 2, Path: "shop/db/4e5f0d0c1b2a3948" } })),
  vector("service", localv1.Service, web),
  vector("service-plain", localv1.Service, db),
  vector("service-with-the-rest", localv1.Service, withTheRest),
  vector("service-without-affinity-seconds", localv1.Service, {
    ...empty,
    SessionAffinity: { $case: "ClientIP", value: { TimeoutSeconds: 0 } },
  }),
  vector("endpoint", localv1.Endpoint, {
    Hostname: "web-0",
    IPs: { V4: ["10.1.1.1"], V6: ["fd00:1::1"] },
    Local: true,
    PortOverrides: webPorts,
    Scopes: { Internal: true, External: true },
  }),
  vector("endpoint-in-no-scope", localv1.Endpoint, {
    ...endpoint,
    PortOverrides: [{ Name: "", Port: 5433 }],
    Scopes: { Internal: false, External: false },
  }),
  // Beyond what a double can count to.
  vector("service-info", globalv1.ServiceInfo, { Hash: "18446744073709551615", Service: db }),
  vector("endpoint-info", globalv1.EndpointInfo, {
    Hash: "9007199254740993",
    Namespace: "shop",
    SourceName: "web-abc",
    ServiceName: "web",
    Endpoint: endpoint,
    Conditions: { Ready: true },
    PodName: "web-a",
    Topology: { Node: "node1", Zone: "a" },
    Hints: { Zones: ["a", "b"] },
  }),
  vector("endpoint-info-not-ready", globalv1.EndpointInfo, {
    ...info,
    Namespace: "shop",
    ServiceName: "web",
    Conditions: { Ready: false },
  }),
  vector("node-info", globalv1.NodeInfo, {
    Hash: "1",
    Node: {
      Name: "node1",
      Labels: new Map([
        ["kubernetes.io/hostname", "node1"],
        ["topology.kubernetes.io/zone", "a"],
      ]),
      Annotations: new Map([["k", "v"]]),
      Topology: { Node: "node1", Zone: "a" },
    },
  }),
];

describe("messages of kpng's protocols", () => {
  test("are all here", () => expect(CASES.map(({ name }) => name)).toEqual([...VECTORS.keys()]));

  test.each(CASES)("$name is written as protobuf-go writes it, and read", ({ name, encoded, decoded, message }) => {
    expect(encoded).toBe(VECTORS.get(name));
    expect(decoded).toEqual(message);
  });
});
