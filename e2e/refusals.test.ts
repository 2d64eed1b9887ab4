import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inLayouts } from "./layout.ts";
import { reachAddress, reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const CASES = inLayouts("refusals", FAMILIES);
const UNALLOCATED = { IPv4: "10.96.200.1", IPv6: "fd00:96::c801" } as const;

describe.each(CASES)("what is refused and what is dropped over %s, %s", needs("root", "ip", "nft>=1.0.1"), (family, layout) => {
  let site: Site;
  let services: Readonly<
    Record<"empty" | "unready" | "internalLocal" | "externalLocal" | "externalLocalEmpty" | "works" | "goes", TestService>
  >;
  beforeAll(async () => {
    site = await createSite({ layout, families: [family] });
    services = await site.services.createAll({
      empty: { endpoints: [] },
      unready: {
        endpoints: [
          { on: "pod-1-1", ready: false },
          { on: "pod-1-2", ready: false, serving: true },
          { on: "pod-2-1", ready: false, serving: false, terminating: true },
        ],
      },
      internalLocal: { endpoints: ["pod-2-1"], fields: { internalTrafficPolicy: "Local" } },
      externalLocal: { endpoints: ["pod-2-1"], fields: { externalTrafficPolicy: "Local" } },
      externalLocalEmpty: { endpoints: [], fields: { externalTrafficPolicy: "Local" } },
      works: { endpoints: ["pod-1-1"] },
      goes: { endpoints: ["pod-1-1"] },
    });
  });
  afterAll(() => site?.destroy());

  const EVERY_WAY = ["clusterIP", "nodePort@node1", "externalIP", "loadBalancerIP"];
  const everything = (outcome: string): Record<string, string> =>
    Object.fromEntries(
      ["pod-1-3", "node1", "client1"].flatMap((from) =>
        EVERY_WAY.flatMap((way) => ["TCP", "UDP"].map((transport) => [`${from} ${way} ${transport}`, outcome])),
      ),
    );

  it.each(["empty", "unready"] as const)("a service whose endpoints are %s is refused, whoever asks, however", async (name) => {
    const expected = everything("refused");
    expect(await reachAll(site, services[name], family, expected)).toEqual(expected);
  });

  it("the Local internal policy without an endpoint here drops what is for the cluster IP", async () => {
    const expected = {
      "pod-1-3 clusterIP": "timeout",
      "pod-1-3 clusterIP UDP": "timeout",
      "node1 clusterIP": "timeout",
      "client1 clusterIP": "timeout",
      "pod-2-3 clusterIP": "pod-2-1 saw pod-2-3",
      "node2 clusterIP": "pod-2-1 saw node2",
      "client1 nodePort@node1": "pod-2-1 saw node1",
      "pod-1-3 externalIP": "pod-2-1 saw node1",
    };
    expect(await reachAll(site, services.internalLocal, family, expected)).toEqual(expected);
  });

  it("the Local external policy without an endpoint here drops what comes from outside, and serves pods and the host", async () => {
    const expected = {
      "client1 nodePort@node1": "timeout",
      "client1 nodePort@node1 UDP": "timeout",
      "client1 externalIP": "timeout",
      "client1 loadBalancerIP": "timeout",
      "client1 loadBalancerIP UDP": "timeout",
      "client1 nodePort@node2": "pod-2-1 saw client1",
      "pod-1-3 nodePort@node1": "pod-2-1 saw pod-1-3",
      "pod-1-3 externalIP": "pod-2-1 saw pod-1-3",
      "node1 nodePort@node1": "pod-2-1 saw node1",
      "node1 loadBalancerIP": "pod-2-1 saw node1",
      "pod-1-3 clusterIP": "pod-2-1 saw pod-1-3",
    };
    expect(await reachAll(site, services.externalLocal, family, expected)).toEqual(expected);
  });

  it("the Local external policy without any endpoint anywhere refuses", async () => {
    const expected = everything("refused");
    expect(await reachAll(site, services.externalLocalEmpty, family, expected)).toEqual(expected);
  });

  it("a port nobody defined on a cluster IP is refused", async () => {
    const expected = {
      "pod-1-3 clusterIP TCP 81": "refused",
      "pod-1-3 clusterIP UDP 81": "refused",
      "node1 clusterIP TCP 81": "refused",
      "client1 clusterIP TCP 81": "refused",
      "pod-1-3 clusterIP TCP 80": "pod-1-1 saw pod-1-3",
    };
    expect(await reachAll(site, services.works, family, expected)).toEqual(expected);
  });

  it("a service address nobody has is dropped, also once its service is gone", async () => {
    await services.goes.remove();
    const gone = services.goes.target("clusterIP", family).address;
    const outcomes = await Promise.all(
      ["pod-1-3", "node1", "client1"].flatMap((from) =>
        [gone, UNALLOCATED[family]].map((address) => reachAddress(site, from, { address, port: 80 })),
      ),
    );
    expect(new Set(outcomes)).toEqual(new Set(["timeout"]));
  });
});
