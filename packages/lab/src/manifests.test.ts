import { Store } from "@turnout/core";
import type { Issue } from "@turnout/core";
import { describe, expect, it } from "vitest";
import type { Place } from "./cluster.ts";
import { serviceCIDRManifest, serviceManifest, sliceManifests } from "./manifests.ts";

const POD = { name: "pod-1-1", node: "node1", address: (family: string) => (family === "IPv4" ? "10.1.1.1" : "fd00:1:1::1") } as Place;

describe("manifests", () => {
  it("are objects the core takes without a complaint", () => {
    const issues: Issue[] = [];
    const store = new Store({ report: (issue) => issues.push(issue) });
    const service = {
      name: "web",
      clusterIPs: ["10.96.0.1", "fd00:96::1"],
      ports: [{ name: "http", port: 80, targetPort: 8080, nodePort: 30_080 }],
      ingress: [{ ip: "198.51.100.1" }],
      sourceRanges: ["203.0.113.0/24"],
      affinitySeconds: 5,
      externalTrafficPolicy: "Local" as const,
      healthCheckNodePort: 30_081,
    };
    store.upsert("Service", serviceManifest(service));
    for (const slice of sliceManifests(service, [{ place: POD, zoneHints: ["a"] }], ["IPv4", "IPv6"])) store.upsert("EndpointSlice", slice);
    store.upsert("ServiceCIDR", serviceCIDRManifest(["10.96.0.0/16"]));
    expect(issues).toEqual([]);
  });

  it("say what was asked and leave out what wasn't", () => {
    expect(serviceManifest({ name: "web", clusterIPs: ["10.96.0.1"], ports: [{ port: 80 }] })).toEqual({
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: "default", name: "web" },
      spec: {
        type: "ClusterIP",
        clusterIP: "10.96.0.1",
        clusterIPs: ["10.96.0.1"],
        ipFamilies: ["IPv4"],
        ports: [{ protocol: "TCP", port: 80, targetPort: 80 }],
        internalTrafficPolicy: "Cluster",
        sessionAffinity: "None",
      },
    });
    const [slice] = sliceManifests(
      { name: "web", clusterIPs: [], ports: [{ port: 80, targetPort: 8080 }] },
      [{ place: POD, ready: false, terminating: true }],
      ["IPv6"],
    );
    expect(slice).toMatchObject({
      addressType: "IPv6",
      ports: [{ name: "", protocol: "TCP", port: 8080 }],
      endpoints: [{ addresses: ["fd00:1:1::1"], conditions: { ready: false, terminating: true }, nodeName: "node1" }],
    });
  });
});
