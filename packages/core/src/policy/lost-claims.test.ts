import { describe, expect, it } from "vitest";
import type { LostClaim } from "./claims.ts";
import { destinationName, LostClaimReports } from "./lost-claims.ts";
import type { DestinationKind } from "../model/rows.ts";
import type { Issue } from "../model/api-objects.ts";

const ROW = { name: { protocol: "TCP" } } as const;

function lost(address: string, winner: string, wonAs: LostClaim["wonAs"] = "externalIP"): LostClaim {
  return { destination: { kind: "externalIP", address, port: 80 }, winner, wonAs };
}

describe("reports of lost claims", () => {
  it("are made once, and again when an address was had in between; not when another winner has it", () => {
    const issues: Issue[] = [];
    const reports = new LostClaimReports((issue) => void issues.push(issue));
    reports.note("row", ROW, [lost("x", "a")]);
    reports.note("row", ROW, [lost("x", "b")]);
    expect(issues).toHaveLength(1);
    reports.note("row", ROW, [lost("x", "b"), lost("y", "c")]);
    expect(issues.map(({ what }) => what)).toEqual([
      "an address it can't have is left out: x:80/TCP is a's external IP",
      "an address it can't have is left out: y:80/TCP is c's external IP",
    ]);
    reports.note("row", ROW, []);
    reports.note("row", ROW, [lost("x", "a")]);
    reports.note("row", undefined, []);
    reports.note("row", ROW, [lost("x", "a")]);
    expect(issues).toHaveLength(4);
  });

  it.each([
    ["serviceRange", "10.96.0.0/16", "x:80/TCP is in the service range 10.96.0.0/16, where no external IP may be"],
    ["clusterIP", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's cluster IP"],
    ["nodePort", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's node port"],
    ["loadBalancerIP", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's load-balancer IP"],
  ] as const)("say who has it: %s", (wonAs, winner, words) => {
    const issues: Issue[] = [];
    new LostClaimReports((issue) => void issues.push(issue)).note("shop/a:http/TCP", ROW, [lost("x", winner, wonAs)]);
    expect(issues).toMatchObject([{ object: "Service port shop/a:http/TCP", what: `an address it can't have is left out: ${words}` }]);
    expect(issues[0]?.hint).toMatch(wonAs === "serviceRange" ? /outside of that range$/ : /^give one of them another address/);
  });
});

describe("names of destinations", () => {
  it.each<readonly [{ readonly kind: DestinationKind; readonly address: string; readonly port: number }, string]>([
    [{ kind: "clusterIP", address: "10.96.0.1", port: 80 }, "10.96.0.1:80/TCP"],
    [{ kind: "clusterIP", address: "fd00:96::1", port: 80 }, "[fd00:96::1]:80/TCP"],
    [{ kind: "nodePort", address: "", port: 30080 }, "node port 30080/TCP"],
  ])("%j is %s", (destination, expected) => expect(destinationName(destination, ROW)).toBe(expected));
});
