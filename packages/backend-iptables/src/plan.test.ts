import { objectId } from "@turnout/core";
import type { IPFamily, NodeSettings, Observed } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { MISPLACED } from "@turnout/host/iptables/text";
import { describe, expect, it } from "vitest";
import { GUARD_RULE } from "./layout.ts";
import { parseSaved } from "./observe.ts";
import type { IptablesObject } from "./objects.ts";
import { explainPlan, planDelta } from "./plan.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, openProxy, SHOWCASE, stateOf } from "./test-support/states.ts";
import type { IptablesProxy, ProxySetting } from "./test-support/states.ts";
import { createFakeHost } from "./testing/index.ts";

interface Circumstances extends ProxySetting {
  readonly family?: IPFamily;
}

const open = ({ family, ...setting }: Circumstances = {}): Promise<IptablesProxy> =>
  openProxy(createFakeHost({ hasKubelet: false }).world, family, setting);

/** The plan that leads from one state to another, as text. */
async function planText(
  before: readonly ServiceFixture[] | undefined,
  after: readonly ServiceFixture[],
  circumstances: Circumstances = {},
): Promise<string> {
  const proxy = await open(circumstances);
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

function balanced(range: string): ServiceFixture {
  return {
    name: "web",
    number: 2,
    remote: 1,
    spec: { type: "LoadBalancer", loadBalancerSourceRanges: [range] },
    loadBalancerIPs: ["198.51.100.6"],
  };
}

describe("golden plans", () => {
  it.each(["IPv4", "IPv6"] as const)("one service of each treatment from nothing, %s", async (family) => {
    await expect(await planText(undefined, SHOWCASE, { family })).toMatchFileSnapshot(`../test/golden/showcase.${family}.iptables`);
  });

  it.each<[string, readonly ServiceFixture[], readonly ServiceFixture[]]>([
    ["endpoint-added", [plain(0, 3)], [plain(0, 4)]],
    ["endpoint-removed", [plain(1, 2)], [plain(0, 2)]],
    ["last-endpoint-gone", [plain(0, 1)], [plain(0, 0)]],
    ["first-endpoint-come", [plain(0, 0)], [plain(0, 1)]],
    ["service-deleted", [plain(1, 1)], []],
    ["affinity-switched-on", [plain(0, 2)], [plain(0, 2, { sessionAffinity: "ClientIP" })]],
    ["source-ranges-changed", [balanced("10.0.0.0/8")], [balanced("192.168.0.0/16")]],
    ["everything-removed", SHOWCASE.slice(0, 6), []],
  ])("%s", async (name, before, after) => {
    await expect(await planText(before, after)).toMatchFileSnapshot(`../test/golden/${name}.iptables`);
  });
});

describe("what rendering depends on", () => {
  it("tells pods by their interface", async () => {
    const bridge = { detectLocal: { mode: "BridgeInterface", bridgeInterface: "br0" } } as const;
    expect(await planText([], [plain(0, 1)], { settings: bridge })).toContain("-d 10.96.0.1/32 ! -i br0 -p tcp");
    const prefix = { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" } } as const;
    const away = SHOWCASE.filter(({ name }) => name === "away");
    expect(await planText([], away, { settings: prefix })).toContain(
      '-i veth+ -m comment --comment "pod traffic for shop/away:main external destinations"',
    );
  });

  it("marks everybody with masqueradeAll, with the bit that is asked for and no other", async () => {
    const text = await planText(undefined, [plain(0, 1)], { settings: { masqueradeAll: true, masqueradeBit: 31 } });
    expect(text).toMatch(/-A KUBE-SVC-\w+ -d 10\.96\.0\.1\/32 -p tcp .* -j KUBE-MARK-MASQ/);
    expect(text).toContain("-A KUBE-MARK-MASQ -j MARK --set-xmark 0x80000000/0x80000000");
    expect(text).toContain("-A KUBE-POSTROUTING -m mark ! --mark 0x80000000/0x80000000 -j RETURN");
    expect(text).toContain("-A KUBE-POSTROUTING -j MARK --set-xmark 0x80000000/0x0");
  });

  it("sends to node ports what goes to chosen addresses; to loopback only where asked for and possible", async () => {
    const tail = async (settings: Partial<NodeSettings>, circumstances: Circumstances = {}): Promise<readonly string[]> =>
      (await planText(undefined, [], { settings, ...circumstances }))
        .split("\n")
        .filter((line) => line.startsWith("-A KUBE-SERVICES") && line.endsWith("-j KUBE-NODEPORTS"))
        .map((line) => line.slice("-A KUBE-SERVICES ".length, line.indexOf("-m comment")).trim());
    expect(await tail({})).toEqual([""]);
    expect(await tail({}, { raw: { localhostNodePorts: false } })).toEqual(["! -d 127.0.0.0/8"]);
    expect(await tail({}, { family: "IPv6" })).toEqual(["! -d ::1/128"]);
    expect(await tail({ nodePortAddresses: ["primary"] })).toEqual(["-d 172.18.0.1/32"]);
    expect(await tail({ nodePortAddresses: ["172.18.0.0/16", "127.0.0.0/8"] })).toEqual(["-d 127.0.0.1/32", "-d 172.18.0.1/32"]);
    expect(await tail({ nodePortAddresses: ["primary", "localhost"] }, { raw: { localhostNodePorts: false } })).toEqual([
      "-d 172.18.0.1/32",
    ]);
  });

  it("lets packets from outside to loopback addresses be routed only behind the guard", async () => {
    const text = await planText(undefined, []);
    expect(text.indexOf(GUARD_RULE)).toBeGreaterThan(0);
    expect(text.indexOf("# sysctl -w net.ipv4.conf.all.route_localnet=1")).toBeGreaterThan(text.indexOf(GUARD_RULE));
    expect(text.indexOf("# sysctl")).toBeLessThan(text.indexOf("*nat"));
    for (const circumstances of [
      { raw: { localhostNodePorts: false } },
      { settings: { nodePortAddresses: ["primary"] } },
      { family: "IPv6" },
    ] as const)
      expect(await planText(undefined, [], circumstances)).not.toContain("route_localnet");
  });

  it("drops nothing for being outside of a window where the kernel doesn't count it as invalid", () => {
    const { node } = stateOf([], "IPv4");
    const forward = (isTcpLiberal: boolean): unknown =>
      renderSkeleton({ node, host: { ...FACTS, isTcpLiberal } }, { localhostNodePorts: true }).find(
        ({ key }) => key === "filter KUBE-FORWARD",
      )?.value;
    expect(forward(false)).toContain("INVALID");
    expect(forward(true)).not.toContain("INVALID");
  });

  it("says whose an endpoint's rules are, unless there are many or it is told otherwise", async () => {
    const said = '"shop/cart:main -> 10.1.0.15:8080"';
    expect(await planText([], [plain(0, 2)])).toContain(said);
    expect(await planText([], [plain(0, 2)], { hasManyEndpoints: true })).not.toContain("->");
    expect(await planText([], [plain(0, 2)], { hasManyEndpoints: true, raw: { "endpoint-comments": true } })).toContain(said);
    const bare = await planText([], [plain(0, 2)], { raw: { "endpoint-comments": false } });
    expect(bare).not.toContain("->");
    expect(bare).toMatch(/-A KUBE-SEP-\w+ -s 10\.1\.0\.15\/32 -j KUBE-MARK-MASQ/);
  });
});

describe("planDelta", () => {
  it("takes the jump of ipvs mode away that matches open connections in the section that fills the chain behind it", async () => {
    const jump = '-m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL';
    const filter = `:FORWARD ACCEPT [0:0]\n:KUBE-PROXY-FIREWALL - [0:0]\n-A FORWARD ${jump}`;
    const proxy = await open();
    proxy.ledger.adopt({ objects: parseSaved({ filter, nat: "", mangle: "" }, "IPv4", false), lingering: [] });
    const text = proxy.planText(SHOWCASE);
    const section = text.split("COMMIT").find((one) => one.includes(":KUBE-FORWARD"));
    expect(section).toMatch(/^-I KUBE-PROXY-FIREWALL .* -j DROP$/m);
    expect(section).toContain(`-D FORWARD ${jump}\n`);
  });

  it("does nothing for no difference", async () => {
    expect(await planText(SHOWCASE, SHOWCASE)).toBe("# nothing to do\n");
  });

  it("neither translates nor lets through between two tables: refusals come first and go last", async () => {
    const gone = await planText([plain(0, 1)], [plain(0, 0)]);
    expect(gone.indexOf("-I KUBE-SERVICES -d 10.96.0.1/32")).toBeLessThan(gone.indexOf("*nat"));
    const come = await planText([plain(0, 0)], [plain(0, 1)]);
    expect(come.indexOf("-D KUBE-SERVICES -d 10.96.0.1/32")).toBeGreaterThan(come.indexOf("*nat"));
  });

  it.each<[string, ServiceFixture["spec"], number]>([
    ["the first endpoint here comes under the Local policy", {}, 1],
    ["the policy becomes Cluster", { externalTrafficPolicy: "Cluster" }, 0],
  ])("keeps refusing external packets until they are translated: %s", async (_, spec, local) => {
    const local0: ServiceFixture = {
      name: "web",
      number: 6,
      remote: 1,
      spec: { type: "LoadBalancer", nodePort: 30006, externalTrafficPolicy: "Local" },
      loadBalancerIPs: ["198.51.100.6"],
    };
    const text = await planText([local0], [{ ...local0, local, spec: { ...local0.spec, ...spec } }]);
    const translated = text.indexOf("*nat");
    expect(translated).toBeGreaterThanOrEqual(0);
    for (const refusal of ["-D KUBE-EXTERNAL-SERVICES -d 198.51.100.6/32 -p tcp", "-D KUBE-EXTERNAL-SERVICES -p tcp"])
      expect(text.indexOf(refusal)).toBeGreaterThan(translated);
  });

  it("lets a refusal go at once where nothing is translated", async () => {
    const text = await planText(
      [plain(0, 0), balanced("10.0.0.0/8")],
      [balanced("192.168.0.0/16"), { ...plain(0, 1), name: "other", number: 5 }],
    );
    expect(text.indexOf("-D KUBE-SERVICES -d 10.96.0.1/32")).toBeGreaterThan(0);
    expect(text.indexOf("-D KUBE-SERVICES -d 10.96.0.1/32")).toBeLessThan(text.indexOf("*nat"));
  });

  it("rewrites no shared chain for a change of one service", async () => {
    const text = await planText(SHOWCASE, [...SHOWCASE.slice(1), plain(2, 2)]);
    expect(text).not.toMatch(/^:KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL) /m);
    expect(text).not.toMatch(/^-A KUBE-SERVICES/m);
  });

  it("deletes the copies of a rule beyond the first, and moves a tail that isn't last", async () => {
    const proxy = await open();
    const { ledger } = proxy;
    proxy.want([plain(0, 1)]);
    const found = new Map(ledger.wanted());
    const change = (object: IptablesObject): void => void found.set(objectId(object), object);
    for (const object of ledger.wanted().values()) {
      if (object.kind === "rule") change({ ...object, value: 3 });
      if (object.kind === "shared" && object.value !== "") change({ ...object, value: `${MISPLACED}\n${object.value}` });
    }
    ledger.adopt({ objects: found, lingering: [] } satisfies Observed<IptablesObject>);
    const lines = proxy.planText().split("\n");
    expect(lines.filter((line) => line.startsWith("-D KUBE-SERVICES -d 10.96.0.1"))).toHaveLength(2);
    const moved = lines.flatMap((line) => (line.endsWith("-j KUBE-NODEPORTS") ? [line.slice(0, 2)] : []));
    expect(moved).toEqual(["-D", "-A"]);
    expect(lines.some((line) => line.startsWith(":"))).toBe(false);
  });

  it("puts jumps that are in another order, or there twice, in the order that counts", async () => {
    const proxy = await open();
    const { ledger } = proxy;
    proxy.want([]);
    const found = new Map(ledger.wanted());
    const input = [...found.values()].find((object) => object.kind === "jumps" && object.key === "filter INPUT");
    const texts = String(input?.value).split("\n");
    expect(texts).toHaveLength(3);
    const turned = [...texts.toReversed(), texts[0]].join("\n");
    found.set("jumps filter INPUT", { kind: "jumps", key: "filter INPUT", value: turned });
    ledger.adopt({ objects: found, lingering: [] });
    let chain = turned.split("\n");
    for (const line of proxy.planText().split("\n")) {
      const [word, from, ...rest] = line.split(" ");
      if (from !== "INPUT") continue;
      const text = rest.join(" ");
      if (word === "-I") chain = [text, ...chain];
      else chain.splice(chain.indexOf(text), 1);
    }
    expect(chain).toEqual(texts);
  });

  it("deletes a chain that has idled long enough, after everything else", () => {
    const chain: IptablesObject = { kind: "chain", key: "nat KUBE-SVC-X", value: "" };
    const other: IptablesObject = { kind: "chain", key: "nat KUBE-SVC-Y", value: "" };
    const delta = { put: [{ after: other }], remove: [], lingering: [{ object: chain, sinceMs: 5_000 }], nowMs: 65_000 };
    expect(explainPlan(planDelta(delta))).toBe("*nat\n:KUBE-SVC-Y - [0:0]\nCOMMIT\n*nat\n:KUBE-SVC-X - [0:0]\n-X KUBE-SVC-X\nCOMMIT\n");
  });
});
