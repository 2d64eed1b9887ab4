import { describe, expect, it } from "vitest";
import { ServiceLog } from "./service-log.ts";
import { partsFor } from "../policy/service-rows.ts";
import { ServiceVersion } from "./service-version.ts";
import { Store } from "./store.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import { upsertRaw } from "../testing/view.ts";

/** A version of Service shop/cart with so many endpoints. */
function versionOf(endpoints: number): ServiceVersion {
  const store = new Store();
  upsertRaw(store, rawService("cart"));
  const ips = Array.from({ length: endpoints }, (_, index) => ({ ip: `10.1.${index >> 8}.${index & 255}` }));
  upsertRaw(store, rawSlice("cart", ips));
  const service = store.service("shop/cart");
  const parts = service === undefined ? undefined : partsFor(service, store.slices("shop/cart"), "IPv4", "");
  if (parts === undefined) throw new Error("no parts");
  return new ServiceVersion(1, parts, new Set());
}

describe("a log of Services", () => {
  it("knows what was before the first change since, not before the last", () => {
    const log = new ServiceLog(1);
    const [first, second] = [versionOf(1), versionOf(2)];
    log.add(2, "shop/cart", first, [1], 1);
    log.add(3, "shop/cart", second, [2, 3], 1);
    expect(log.since(1).get("shop/cart")).toMatchObject({ before: { version: first }, triggersMs: [1, 2, 3] });
    expect(log.since(2).get("shop/cart")).toMatchObject({ before: { version: second }, triggersMs: [2, 3] });
    expect(log.since(3).size).toBe(0);
  });

  it("lets go of what was before when that gets heavy, the oldest first; names stay", () => {
    const log = new ServiceLog(1);
    const heavy = versionOf(2_000);
    for (let revision = 2; revision < 6; revision++) log.add(revision, `shop/s${revision}`, heavy, [], 4);
    const known = [...log.since(1)].map(([key, { before, rowKeys }]) => `${key}: ${rowKeys.length} row, ${before !== undefined}`);
    expect(known.toSorted()).toEqual(["shop/s2: 1 row, false", "shop/s3: 1 row, false", "shop/s4: 1 row, true", "shop/s5: 1 row, true"]);
  });

  it("knows no past where it got long and folded the changes of a Service; names stay", () => {
    const log = new ServiceLog(1, 2);
    const version = versionOf(1);
    for (let revision = 2; revision < 7; revision++) log.add(revision, "shop/cart", version, [revision], 1);
    expect(log.since(1).get("shop/cart")).toEqual({ before: undefined, rowKeys: version.rowKeys, triggersMs: [2, 3, 4, 5, 6] });
  });
});
