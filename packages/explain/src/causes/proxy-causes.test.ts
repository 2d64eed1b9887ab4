import { expect, it } from "vitest";
import type { AskedPacket, Cause } from "@turnout/core";
import { proxyCauses } from "./proxy-causes.ts";

const packet = { destination: "10.96.0.10" } as AskedPacket;
const found = (table: string, how: { readonly hasKubeChains?: boolean; readonly answersItself?: boolean }): readonly Cause[] =>
  proxyCauses({ packet, hasKubeChains: false, answersItself: false, ...how }, { tables: [], proxyTables: [table] });

it.each([
  ["ip turnout", "turnout cleanup --backend nft"],
  ["inet turnout-ebpf", "turnout cleanup --backend ebpf"],
  ["ip kube-proxy", "nft delete table ip kube-proxy"],
])("what another proxy left in table %s is removed by a command, where the backend removes nothing itself", (table, command) => {
  expect(found(table, { answersItself: true })).toMatchObject([{ id: "two_proxies", commands: [command] }]);
});

it("a backend with rules of its own removes them when it starts, and one with a table of that name has it itself", () => {
  expect(found("ip turnout", { hasKubeChains: true })[0]?.commands).toBeUndefined();
  expect(found("ip turnout", {})).toEqual([]);
});
