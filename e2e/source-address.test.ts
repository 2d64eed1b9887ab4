import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inLayouts } from "./layout.ts";
import { reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { createSite, HOST_PORT } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const CASES = inLayouts("source address", FAMILIES);

describe.each(CASES)("the address servers see over %s, %s", needs("root", "ip", "nft>=1.0.1"), (family, layout) => {
  let site: Site;
  let services: Readonly<Record<"local" | "remote" | "externalLocal" | "host", TestService>>;
  beforeAll(async () => {
    site = await createSite({ layout, families: [family] });
    services = await site.services.createAll({
      local: { endpoints: ["pod-1-1"] },
      remote: { endpoints: ["pod-2-1"] },
      externalLocal: { endpoints: ["pod-1-1", "pod-2-1"], fields: { externalTrafficPolicy: "Local" } },
      host: { endpoints: ["node1", "node2"], targetPort: HOST_PORT },
    });
  });
  afterAll(() => site?.destroy());

  it("is a pod's own when it asks a cluster IP, the node's for everybody else", async () => {
    const expected = {
      "pod-1-2 clusterIP": "pod-1-1 saw pod-1-2",
      "pod-1-2 clusterIP UDP": "pod-1-1 saw pod-1-2",
      "pod-2-2 clusterIP": "pod-1-1 saw pod-2-2",
      "node1 clusterIP": "pod-1-1 saw node1",
      "node2 clusterIP UDP": "pod-1-1 saw node2",
      "client1 clusterIP": "pod-1-1 saw node1",
      "client1 clusterIP UDP": "pod-1-1 saw node1",
    };
    expect(await reachAll(site, services.local, family, expected)).toEqual(expected);
  });

  it("is the node's for node ports, external and load-balancer addresses, even for pods and endpoints of the same node", async () => {
    const expected = {
      "pod-1-2 nodePort@node1": "pod-1-1 saw node1",
      "pod-1-2 nodePort@node1 UDP": "pod-1-1 saw node1",
      "pod-1-2 externalIP": "pod-1-1 saw node1",
      "pod-1-2 loadBalancerIP": "pod-1-1 saw node1",
      "node1 externalIP": "pod-1-1 saw node1",
      "client1 nodePort@node1": "pod-1-1 saw node1",
      "client1 nodePort@node2": "pod-1-1 saw node2",
      "client1 externalIP": "pod-1-1 saw node1",
      "client1 loadBalancerIP UDP": "pod-1-1 saw node1",
    };
    expect(await reachAll(site, services.local, family, expected)).toEqual(expected);
  });

  it("does not depend on the node the endpoint is on", async () => {
    const expected = {
      "pod-1-2 clusterIP": "pod-2-1 saw pod-1-2",
      "node1 clusterIP": "pod-2-1 saw node1",
      "client1 clusterIP": "pod-2-1 saw node1",
      "pod-1-2 nodePort@node1": "pod-2-1 saw node1",
      "client1 nodePort@node1": "pod-2-1 saw node1",
      "client1 externalIP": "pod-2-1 saw node1",
    };
    expect(await reachAll(site, services.remote, family, expected)).toEqual(expected);
  });

  it("is the node's when a pod reaches itself", async () => {
    const expected = {
      "pod-1-1 clusterIP": "pod-1-1 saw node1",
      "pod-1-1 clusterIP UDP": "pod-1-1 saw node1",
      "pod-1-1 nodePort@node1": "pod-1-1 saw node1",
      "pod-1-1 externalIP": "pod-1-1 saw node1",
    };
    expect(await reachAll(site, services.local, family, expected)).toEqual(expected);
  });

  it("is the client's under the Local external policy; pods keep theirs, hosts use the node's", async () => {
    const expected = {
      "client1 nodePort@node1": "pod-1-1 saw client1",
      "client1 nodePort@node2": "pod-2-1 saw client1",
      "client1 externalIP": "pod-1-1 saw client1",
      "client1 externalIP UDP": "pod-1-1 saw client1",
      "client1 loadBalancerIP": "pod-1-1 saw client1",
      "pod-1-2 nodePort@node1": "pod-1-1 pod-2-1 saw pod-1-2",
      "pod-1-2 externalIP": "pod-1-1 pod-2-1 saw pod-1-2",
      "pod-1-2 loadBalancerIP UDP": "pod-1-1 pod-2-1 saw pod-1-2",
      "node1 nodePort@node1": "pod-1-1 pod-2-1 saw node1",
      "node1 externalIP": "pod-1-1 pod-2-1 saw node1",
      "node1 loadBalancerIP": "pod-1-1 pod-2-1 saw node1",
      "pod-1-1 externalIP": "pod-1-1 pod-2-1 saw node1 pod-1-1",
    };
    expect(await reachAll(site, services.externalLocal, family, expected)).toEqual(expected);
  });

  it("follows the same rules for endpoints on the hosts' own network", async () => {
    const expected = {
      "pod-1-2 clusterIP": "node1 node2 saw pod-1-2",
      "pod-1-2 clusterIP UDP": "node1 node2 saw pod-1-2",
      "node1 clusterIP": "node1 node2 saw node1",
      // What ends on the node that translated it never leaves it, so there is nothing to masquerade.
      "client1 nodePort@node1": "node1 node2 saw client1 node1",
      "client1 externalIP": "node1 node2 saw client1 node1",
    };
    expect(await reachAll(site, services.host, family, expected)).toEqual(expected);
  });
});
