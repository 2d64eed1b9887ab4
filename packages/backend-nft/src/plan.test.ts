import { objectId } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import { isElements, nftStatementText } from "@turnout/host/nft-statement";
import type { ServiceFixture } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { ChainRules } from "./objects.ts";
import type { NftObject } from "./objects.ts";
import { planDelta } from "./plan.ts";
import { openProxy, SETTINGS } from "./test-support/states.ts";
import { createFakeHost } from "./testing/index.ts";

/** The transactions of a plan, as text. */
function transactionsOf(...args: Parameters<typeof planDelta>): readonly { readonly statements: readonly string[] }[] {
  return planDelta(...args).steps.map(({ statements }) => ({ statements: statements.map(nftStatementText) }));
}

/** The plan that leads from one state to another, as text. */
async function planText(
  before: readonly ServiceFixture[] | undefined,
  after: readonly ServiceFixture[],
  family?: IPFamily,
): Promise<string> {
  const proxy = await openProxy(createFakeHost().world, family);
  if (before !== undefined) await proxy.sync(before);
  const text = proxy.planText(after);
  expect(proxy.ledger.defects.size).toBe(0);
  return text;
}

const plain = (local: number, remote: number, spec: ServiceFixture["spec"] = {}): ServiceFixture => ({
  name: "cart",
  number: 1,
  local,
  remote,
  spec,
});

describe("golden plans", () => {
  it.each(["IPv4", "IPv6"] as const)("one service of each treatment from nothing, %s", async (family) => {
    await expect(await planText(undefined, SHOWCASE, family)).toMatchFileSnapshot(`../test/golden/showcase.${family}.nft`);
  });

  it.each<[string, readonly ServiceFixture[], readonly ServiceFixture[]]>([
    ["endpoint-added", [plain(0, 3)], [plain(0, 4)]],
    ["endpoint-added-that-needs-more-slots", [plain(0, 2)], [plain(0, 3)]],
    ["endpoint-added-that-makes-a-pool-large", [plain(0, 16)], [plain(0, 17)]],
    ["first-of-eighteen-endpoints-removed", [plain(1, 17)], [plain(0, 17)]],
    ["large-pool-deleted", [plain(0, 17)], []],
    ["first-of-four-endpoints-removed", [plain(1, 3)], [plain(0, 3)]],
    ["first-of-three-endpoints-removed", [plain(1, 2)], [plain(0, 2)]],
    ["last-endpoint-gone", [plain(0, 1)], [plain(0, 0)]],
    ["service-deleted", [plain(1, 1)], []],
    ["affinity-switched-on", [plain(0, 2)], [plain(0, 2, { sessionAffinity: "ClientIP" })]],
    ["source-ranges-changed", [balanced("10.0.0.0/8")], [balanced("192.168.0.0/16")]],
  ])("%s", async (name, before, after) => {
    await expect(await planText(before, after)).toMatchFileSnapshot(`../test/golden/${name}.nft`);
  });
});

function balanced(range: string): ServiceFixture {
  return {
    name: "web",
    number: 2,
    remote: 1,
    spec: { type: "LoadBalancer", loadBalancerSourceRanges: [range] },
    loadBalancerIPs: ["198.51.100.6"],
  };
}

describe("planDelta", () => {
  it("does nothing for no difference", async () => {
    expect(await planText(SHOWCASE, SHOWCASE)).toBe("# nothing to do\n");
  });

  it("keeps masquerade out of other people's mark bits", async () => {
    const settings = { ...SETTINGS, masqueradeAll: true, masqueradeBit: 5 };
    const text = (await openProxy(createFakeHost().world, "IPv4", { settings })).planText([plain(0, 1)]);
    expect(text).toContain("meta mark set meta mark or 0x00000020 goto pick-tcp");
    expect(text).toContain("meta mark and 0x00000020 == 0x00000020 masquerade fully-random");
    expect(text).toContain("meta mark and 0x00000020 == 0x00000020 meta mark set meta mark xor 0x00000020");
  });

  it("deletes a chain that has idled long enough behind all else, in a transaction of its own", () => {
    const chain: NftObject = { kind: "chain", key: "pick-9", value: "x/1", rules: ChainRules.NONE };
    const put = [{ after: { kind: "cluster-ips", key: "10.96.0.1", value: true } as const }];
    const steps = transactionsOf({ put, remove: [], lingering: [{ object: chain, sinceMs: 5_000 }], nowMs: 6_000 }, "IPv4");
    expect(steps.map(({ statements }) => statements)).toEqual([
      ["add element ip turnout cluster-ips { 10.96.0.1 }"],
      ["delete chain ip turnout pick-9"],
    ]);
  });

  it("loads many new endpoints ahead in bounded transactions, services last", () => {
    const put = Array.from({ length: 5_000 }, (_, index) => ({
      after: {
        kind: "service",
        key: `10.96.${index >> 8}.${index & 255} . tcp . 80`,
        value: { verdict: "goto pick-9", comment: "", local: [], cluster: Array.from({ length: 9 }, (_x, k) => `10.1.0.${k} . 80`) },
      } as const satisfies NftObject,
    }));
    const steps = transactionsOf({ put, remove: [], lingering: [], nowMs: 0 }, "IPv4");
    expect(steps.length).toBe(4);
    expect(
      steps.slice(0, -1).every(({ statements }) => statements.every((text) => text.startsWith("add element ip turnout endpoints-tcp"))),
    ).toBe(true);
    expect(steps.at(-1)?.statements.every((text) => text.startsWith("add element ip turnout services"))).toBe(true);
  });

  it("takes many endpoints away in bounded transactions, after nothing asks them any more, and their map last", () => {
    const cluster = Array.from({ length: 50_000 }, (_, index) => `10.1.${index >> 8}.${index & 255} . 80`);
    const remove: readonly NftObject[] = [
      { kind: "service", key: "10.96.0.1 . tcp . 80", value: { verdict: "goto pick-tcp-65536-in-7", comment: "", local: [], cluster: [] } },
      { kind: "map", key: "endpoints-tcp-7", value: true },
      { kind: "large-pool", key: "endpoints-tcp-7 10.96.0.1 . 80 . 0", value: cluster },
    ];
    const steps = transactionsOf({ put: [], remove, lingering: [], nowMs: 0 }, "IPv4");
    expect(steps.map(({ statements }) => statements.length)).toEqual([1, 40, 40, 21]);
    expect(steps[0]?.statements).toEqual(["delete element ip turnout services { 10.96.0.1 . tcp . 80 }"]);
    expect(steps.at(-1)?.statements.at(-1)).toBe("delete map ip turnout endpoints-tcp-7");
  });

  it.each<[string, ServiceFixture["spec"]]>([
    ["no affinity", {}],
    ["affinity", { sessionAffinity: "ClientIP" }],
  ])("writes as much for one endpoint that comes or goes, however many there are: %s", async (_, spec) => {
    const written = async (remote: number): Promise<readonly number[]> => {
      const proxy = await openProxy(createFakeHost().world, "IPv4");
      await proxy.sync([plain(1, remote, spec)]);
      const sizes: number[] = [];
      // The local one is the first of them.
      for (const local of [0, 1]) {
        proxy.want([plain(local, remote, spec)]);
        const statements = proxy.plan().steps.flatMap((step) => step.statements);
        sizes.push(statements.reduce((sum, one) => sum + (isElements(one) ? one.elements.length : 1), 0));
        await proxy.sync();
      }
      return sizes;
    };
    expect(await written(200)).toEqual(await written(40));
  });

  it("replaces a table of another layout within one transaction", async () => {
    const proxy = await openProxy(createFakeHost().world);
    const other: NftObject = { kind: "table", key: "layout", value: "another" };
    proxy.ledger.adopt({ objects: new Map([[objectId(other), other]]), lingering: [] });
    proxy.want([plain(0, 1)]);
    const steps = transactionsOf(proxy.ledger.delta(0), "IPv4");
    expect(steps).toHaveLength(1);
    expect(steps[0]?.statements.slice(0, 2)).toEqual(["delete table ip turnout", "add table ip turnout"]);
  });
});
