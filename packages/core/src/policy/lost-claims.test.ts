import { describe, expect, it } from "vitest";
import type { ClaimedAddress, LostClaim, ResolvedClaims } from "./claims.ts";
import { destinationName, LostClaimReports } from "./lost-claims.ts";
import type { DestinationKind } from "../model/rows.ts";
import type { Issue } from "../model/api-objects.ts";

const ROW = { name: { protocol: "TCP" } } as const;

function lost(address: string, winner: string, wonAs: LostClaim["wonAs"] = "externalIP"): LostClaim {
  return { destination: { kind: "externalIP", address, port: 80 }, winner, wonAs };
}

/** A row with what it lost, and what it holds though another row wants it. */
function resolved(claims: readonly LostClaim[], ...held: readonly ClaimedAddress[]): ResolvedClaims<typeof ROW> {
  return { row: ROW, lost: claims, inUse: [], contested: [...claims.map(({ destination }) => destination), ...held] };
}

describe("reports of lost claims", () => {
  it("are made once, and again when an address was had in between; not when another winner has it", () => {
    const issues: Issue[] = [];
    const reports = new LostClaimReports((issue) => void issues.push(issue));
    reports.note("row", resolved([lost("x", "a")]));
    reports.note("row", resolved([lost("x", "b")]));
    expect(issues).toHaveLength(1);
    reports.note("row", resolved([lost("x", "b"), lost("y", "c")]));
    expect(issues.map(({ what }) => what)).toEqual([
      "an address it can't have is left out: x:80/TCP is a's external IP",
      "an address it can't have is left out: y:80/TCP is c's external IP",
    ]);
    reports.note("row", resolved([]));
    reports.note("row", resolved([lost("x", "a")]));
    reports.note("row", undefined);
    reports.note("row", resolved([lost("x", "a")]));
    expect(issues).toHaveLength(4);
  });

  it("are not repeated while rows take turns, and what is said of now follows", () => {
    const issues: Issue[] = [];
    const reports = new LostClaimReports((issue) => void issues.push(issue));
    const [claim] = [lost("x", "shop/b:http/TCP")];
    for (let turn = 0; turn < 3; turn++) {
      reports.note("shop/a:http/TCP", resolved([claim]));
      expect([...reports.issues()]).toHaveLength(1);
      reports.note("shop/a:http/TCP", resolved([], claim.destination));
      expect([...reports.issues()]).toEqual([]);
    }
    expect(issues).toHaveLength(1);
    reports.note("shop/a:http/TCP", resolved([]));
    reports.note("shop/a:http/TCP", resolved([claim]));
    expect(issues).toHaveLength(2);
  });

  it("have an event for both Services, the same whichever of them has the address", () => {
    const events = (key: string, winner: string): Issue["events"] => {
      const issues: Issue[] = [];
      new LostClaimReports((issue) => void issues.push(issue)).note(key, resolved([{ ...lost("x", winner), isForNow: true }]));
      return issues[0]?.events?.toSorted((a, b) => (a.service < b.service ? -1 : 1));
    };
    const note = (other: string): string =>
      `x:80/TCP is also an external IP of Service ${other}: the oldest Service has it, or the oldest of its namespace with a usable endpoint; give one of them another address or port`;
    const both = [
      { reason: "AddressContested", service: "shop/blue", note: note("shop/green") },
      { reason: "AddressContested", service: "shop/green", note: note("shop/blue") },
    ];
    expect(events("shop/blue:http/TCP", "shop/green:web/TCP")).toEqual(both);
    expect(events("shop/green:web/TCP", "shop/blue:http/TCP")).toEqual(both);
    expect(events("shop/blue:http/TCP", "shop/blue:web/TCP")).toEqual([]);
  });

  it("have events that name the kinds where these decide, and none where a service range does", () => {
    const issues: Issue[] = [];
    const reports = new LostClaimReports((issue) => void issues.push(issue));
    reports.note("shop/a:http/TCP", resolved([lost("x", "lab/b:http/TCP", "clusterIP"), lost("y", "10.96.0.0/16", "serviceRange")]));
    expect(issues[0]?.events).toEqual([
      {
        reason: "AddressContested",
        service: "shop/a",
        note: "x:80/TCP is also a cluster IP of Service lab/b: a cluster IP has precedence; give one of them another address or port",
      },
      {
        reason: "AddressContested",
        service: "lab/b",
        note: "x:80/TCP is also an external IP of Service shop/a: a cluster IP has precedence; give one of them another address or port",
      },
    ]);
  });

  it.each([
    ["serviceRange", "10.96.0.0/16", "x:80/TCP is in the service range 10.96.0.0/16, where no external IP may be"],
    ["clusterIP", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's cluster IP"],
    ["nodePort", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's node port"],
    ["loadBalancerIP", "shop/cart:http/TCP", "x:80/TCP is shop/cart:http/TCP's load-balancer IP"],
  ] as const)("say who has it: %s", (wonAs, winner, words) => {
    const issues: Issue[] = [];
    new LostClaimReports((issue) => void issues.push(issue)).note("shop/a:http/TCP", resolved([lost("x", winner, wonAs)]));
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
