import { FAMILIES } from "@turnout/core";
import type { IPFamily, Observed } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { listedTable } from "./test-support/listed-table.ts";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nftModule } from "./module.ts";
import { layoutName, NFT_FAMILY } from "./names.ts";
import type { NftObject } from "./objects.ts";
import { objectsInParts } from "./observe.ts";
import { proxyOf } from "./test-support/states.ts";

const { signal } = new AbortController();
const LARGE: readonly ServiceFixture[] = (["TCP", "UDP", "SCTP"] as const).map((protocol, index) => ({
  name: `large-${index}`,
  number: 90 + index,
  protocol,
  local: 18,
  remote: 30,
  spec: { type: "NodePort", nodePort: 30_090 + index, ...(index === 2 ? { sessionAffinity: "ClientIP" } : {}) },
}));

/** More addresses than the fixtures' own have room for. */
function endpointAddress(family: IPFamily, n: number): string {
  return family === "IPv4" ? `10.1.${n >> 8}.${n & 255}` : `fd00:1::${n.toString(16)}`;
}

/** What somebody's hand may leave in our table; `ip` and addresses are of the family. */
const TAMPERING: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: [
    "add map ip turnout serving-0123456789abcdef-cluster { typeof meta priority : verdict; }",
    "add element ip turnout serving-0123456789abcdef-cluster { 4294967294 : drop, 536870914 : drop, 1073741824 : return }",
    "add element ip turnout services { 203.0.113.8 . tcp . 1 : continue }",
    "add element ip turnout nodeports { sctp . 1 : return }",
    "add element ip turnout endpoints-sctp { 203.0.113.7 . 1 . 20 : 0.0.0.0 . 0 }",
    "add element ip turnout cluster-ips { 255.255.255.255 }",
    "add chain ip turnout idle",
    'add element ip turnout services { 203.0.113.7 . udp . 65535 comment "by hand; and more" : jump idle }',
    "add chain ip turnout extra { type filter hook input priority 7; policy drop; }",
    'add rule ip turnout idle counter comment "one"',
    "add rule ip turnout idle counter",
    "add table ip other",
    "add set ip other services { type ipv4_addr; }",
    "add chain ip other nat-output",
  ],
  IPv6: [
    "add map ip6 turnout affinity-0123456789abcdef { typeof ip6 saddr : meta priority; flags dynamic,timeout; }",
    "add element ip6 turnout affinity-0123456789abcdef { fd00::7 timeout 1h : 1073741824 }",
    "add element ip6 turnout services { ::1 . udp . 53 : drop }",
    "add element ip6 turnout services { 2001:0:0:1:0:0:0:1 . udp . 53 : accept }",
    "add element ip6 turnout cluster-ips { fd00:1:2:3:4:5:6:7, ff00:: }",
    "add element ip6 turnout hairpin { fd00:1:: . fd00:0:1::1 }",
  ],
};

describe("what is read of a real kernel's table is what nft lists", needs("root", "netns", "nft>=1.0.6"), () => {
  let namespace: TestNamespace;
  beforeAll(() => {
    namespace = createTestNamespace("tread");
  });
  afterAll(() => {
    namespace?.remove();
  });

  const nft = (...args: readonly string[]): Promise<string> => namespace.run("nft", args);

  const contentOf = ({ objects }: Observed<NftObject>): readonly string[] =>
    Array.from(objects.values(), (object) => JSON.stringify([object.kind, object.key, object.value])).sort();

  it.each(FAMILIES.flatMap((family) => [true, false].map((counters) => ({ family, counters }))))(
    "$family, counting: $counters",
    async ({ family, counters }) => {
      await nft("flush", "ruleset");
      const table = `${NFT_FAMILY[family]} turnout`;
      const { world } = namespace;
      const dataplane = await nftModule.open(nftModule.parseOptions({ counters }), world, signal);
      const backend = dataplane.family(family);
      const observe = async (): Promise<Observed<NftObject>> => {
        const observed = await backend.observe(signal);
        if (observed === undefined) throw new Error("a table in the kernel can be looked at");
        return observed;
      };
      const compare = async (): Promise<readonly string[]> => {
        const read = contentOf(await observe());
        const listed = contentOf(objectsInParts(listedTable(await nft("-j", "list", "table", ...table.split(" "))), counters));
        expect(read).toEqual(listed);
        return read;
      };
      expect((await observe()).objects.size).toBe(0);
      await nft(`add table ${table}`);
      expect(await compare()).toEqual([JSON.stringify(["table", "layout", "another"])]);

      const proxy = proxyOf(backend, family, { endpointAddress });
      await proxy.adopt();
      const written = await proxy.sync([...SHOWCASE, ...LARGE]);
      const kinds = new Set((await compare()).map((line) => (JSON.parse(line) as readonly string[])[0]));
      expect(kinds.size).toBe(11);
      for (const statement of TAMPERING[family]) await nft(statement);
      const tampered = await compare();
      expect(tampered.length).toBeGreaterThan(written);
      // What we never make is left out.
      const address = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
      await nft(
        `add set ${table} ranges { type ${address}; flags interval; elements = { ${family === "IPv4" ? "10.0.0.0/8" : "fd00::/8"} }; }`,
      );
      await nft(`add set ${table} links { type ifname . ${address}; }`);
      expect(contentOf(await observe())).toEqual(tampered);
      // For who is told otherwise it is another table, and whole.
      const others = await nftModule.open(nftModule.parseOptions({ counters: !counters }), world, signal);
      const layout: NftObject = { kind: "table", key: "layout", value: layoutName(!counters) };
      const reported = new Map([["table layout", { ...layout, value: layoutName(counters) }]]);
      expect((await others.family(family).observe(signal))?.objects).toEqual(reported);
      await others.close(signal);
      await nft(`delete chain ${table} layout-${layoutName(counters)}`);
      expect(contentOf(await observe())).toEqual([JSON.stringify(["table", "layout", "another"])]);
      await dataplane.close(signal);
    },
  );
});
