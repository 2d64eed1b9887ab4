import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numbered } from "./chains.ts";
import { nftModule } from "./module.ts";
import { clientsMap, NFT_FAMILY } from "./names.ts";
import { listedTable } from "./test-support/listed-table.ts";
import { proxyOf, stateOf } from "./test-support/states.ts";

const { signal } = new AbortController();
const ROW = "shop/sticky:main/UDP";
const PLACES = {
  IPv4: { own: "172.18.0.1/24", all: "0.0.0.0/0", service: "10.96.0.1" },
  IPv6: { own: "fd00:18::1/64", all: "::/0", service: "fd00:96::1" },
} as const;

const sticky = (local: number, remote: number): ServiceFixture => ({
  name: "sticky",
  number: 1,
  protocol: "UDP",
  local,
  remote,
  spec: { sessionAffinity: "ClientIP" },
});

describe("affinity of packets on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  let namespace: TestNamespace;
  beforeAll(async () => {
    namespace = createTestNamespace("taffinity");
    for (const line of ["link add up0 type veth peer name up1", "link set up0 up", "link set up1 up"])
      await namespace.run("ip", line.split(" "));
    for (const { own, all } of Object.values(PLACES)) {
      await namespace.run("ip", ["address", "add", own, "dev", "up0", ...(own.includes("::") ? ["nodad"] : [])]);
      await namespace.run("ip", ["route", "add", all, "dev", "up0"]);
    }
  });
  afterAll(() => namespace?.remove());

  it.each(["IPv4", "IPv6"] as const)(
    "R-46 a client stays while its endpoint is there, and is never sent back; nothing of it is read or written when an endpoint goes: %s",
    async (family) => {
      const { service } = PLACES[family];
      const dataplane = await nftModule.open(nftModule.parseOptions({}), namespace.world, signal);
      const proxy = proxyOf(dataplane.family(family), family);
      const ids = (fixture: ServiceFixture): readonly number[] =>
        numbered(stateOf(family)([fixture]).rows.get(ROW)?.endpoints ?? []).map(({ id }) => id);
      const map = clientsMap(ROW);
      const listed = (): Promise<string> => namespace.run("nft", ["-j", "list", "map", NFT_FAMILY[family], "turnout", map]);
      const remembered = async (): Promise<readonly number[]> =>
        (listedTable(await listed()).sets.get(map) ?? []).map(({ value }) => Number(value));
      const send = async (): Promise<number> => {
        await namespace.run("bash", ["-c", `for k in 1 2 3 4 5 6; do echo x >/dev/udp/${service}/80; done`]);
        const [id = 0, ...others] = await remembered();
        expect(others).toEqual([]);
        return id;
      };
      const [both, one, other] = [sticky(1, 1), sticky(1, 0), sticky(0, 1)];
      await proxy.sync([both]);
      const first = await send();
      expect(ids(both)).toContain(first);
      const rest = ids(one).includes(first) ? other : one;
      await proxy.sync([rest]);
      expect(await remembered()).toEqual([first]);
      const second = await send();
      expect([second]).toEqual(ids(rest));
      await proxy.sync([both]);
      expect(await send()).toBe(second);
      // A Service's clients are its own matter, and their number is bounded.
      expect(await listed()).toContain('"size": 65535');
      await dataplane.close(signal);
    },
  );
});
