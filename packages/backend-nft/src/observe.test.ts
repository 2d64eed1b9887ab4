import { readFileSync } from "node:fs";
import type { NftTable } from "@turnout/host";
import { listedTable } from "./test-support/listed-table.ts";
import { describe, expect, it } from "vitest";
import { objectsInParts } from "./observe.ts";

interface Listed {
  readonly nftables: { readonly map?: { readonly name: string; elem?: unknown[] } }[];
}

/** What nft listed of the golden showcase, with elements put in by hand. */
function listedWith(map: string, element: unknown): NftTable {
  const listed = JSON.parse(readFileSync(new URL("../test/fuzz/nft-table/showcase-IPv4.input", import.meta.url), "utf8")) as Listed;
  const found = listed.nftables.find((entry) => entry.map?.name === map)?.map;
  found?.elem?.push(element);
  return listedTable(JSON.stringify(listed));
}

const at = (index: unknown): readonly unknown[] => [{ concat: ["10.96.0.1", 80, index] }, { concat: ["10.1.1.5", 8080] }];

describe("what somebody else put into the table", () => {
  it("an element a little behind the end of a list makes a list with a gap", () => {
    const { objects } = objectsInParts(listedWith("endpoints-tcp", at(99)));
    expect(objects.size).toBeGreaterThan(10);
    expect(objects.get("service 10.96.0.1 . tcp . 80")?.value).toMatchObject({ cluster: { length: 100 } });
  });

  it("an element at the last place that the kernel has takes no memory, and the table is replaced as a whole", () => {
    const { objects } = objectsInParts(listedWith("endpoints-tcp", at(4_294_967_295)));
    expect([...objects.values()]).toEqual([{ kind: "table", key: "layout", value: "another" }]);
  });

  it("what has no place where it should is refused", () => {
    expect(() => objectsInParts(listedWith("endpoints-tcp", at("x")))).toThrow(/^\[tool_failed\] an element has no place in a list/);
  });
});
