import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reachAll } from "./reach.ts";
import { SERVER_PORT } from "./services.ts";
import type { TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const SERVERS = ["pod-1-1", "pod-1-2", "pod-2-1"];

describe.each(layoutsOf("SCTP"))("SCTP, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let services: Readonly<Record<"open" | "single" | "empty" | "externalLocal", TestService>>;
  beforeAll(async () => {
    site = await createSite({ layout });
    for (const name of SERVERS) await site.place(name).agent().serve({ name, transport: "SCTP", port: SERVER_PORT });
    const protocols = ["SCTP"] as const;
    services = await site.services.createAll({
      open: { endpoints: SERVERS, protocols },
      single: { endpoints: ["pod-1-1"], protocols },
      empty: { endpoints: [], protocols },
      externalLocal: { endpoints: ["pod-2-1"], protocols, fields: { externalTrafficPolicy: "Local" } },
    });
  });
  afterAll(() => site?.destroy());

  it.each(FAMILIES)("reaches every endpoint over %s, with the addresses of the other protocols", async (family) => {
    const all = SERVERS.join(" ");
    const expected = {
      "pod-1-3 clusterIP SCTP": `${all} saw pod-1-3`,
      "node1 clusterIP SCTP": `${all} saw node1`,
      "client1 nodePort@node2 SCTP": `${all} saw node2`,
      "pod-2-3 externalIP SCTP": `${all} saw node2`,
    };
    expect(await reachAll(site, services.open, family, expected)).toEqual(expected);
    const hairpin = { "pod-1-1 clusterIP SCTP": "pod-1-1 saw node1" };
    expect(await reachAll(site, services.single, family, hairpin)).toEqual(hairpin);
  });

  it.each(FAMILIES)("is refused and dropped over %s like the others", async (family) => {
    const refused = { "pod-1-3 clusterIP SCTP": "refused", "client1 externalIP SCTP": "refused", "node1 loadBalancerIP SCTP": "refused" };
    expect(await reachAll(site, services.empty, family, refused)).toEqual(refused);
    const local = { "client1 loadBalancerIP SCTP": "timeout", "pod-1-3 nodePort@node1 SCTP": "pod-2-1 saw pod-1-3" };
    expect(await reachAll(site, services.externalLocal, family, local)).toEqual(local);
  });
});
