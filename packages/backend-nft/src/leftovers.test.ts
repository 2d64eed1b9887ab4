import { expect, test } from "vitest";
import { leftoverTables } from "./leftovers.ts";

const listed = (...names: readonly string[]): string =>
  JSON.stringify({
    nftables: [
      { metainfo: { version: "1.0.6", json_schema_version: 1 } },
      ...names.map((name) => ({ table: { family: "ip", name, handle: 1 } })),
    ],
  });

test.each([
  ["nothing is there", [], true, []],
  ["kube-proxy's, beside ours in use", ["turnout", "kube-proxy", "nat"], true, ["kube-proxy"]],
  ["both, once another backend has taken our place", ["nat", "kube-proxy", "turnout"], false, ["turnout", "kube-proxy"]],
  ["names that only begin like one", ["turnout2", "kube-proxy-old", "my-turnout"], false, []],
])("%s", (_name, tables, isInUse, expected) => {
  expect(leftoverTables(listed(...tables), isInUse)).toEqual(expected);
});
