import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { rawService, upsertRaw } from "@turnout/core/testing";
import { expect, test } from "vitest";
import { ItemImage } from "./item-image.ts";
import { makeItem, type Item } from "./kpng-item.ts";

const item = (path: string, content: number): Item => makeItem("service", localv1.Set.ServicesSet, path, Buffer.from(String(content)));

test("a watcher that is further behind than changes are remembered is told of every difference", () => {
  const store = new Store({ keepsPodNames: true });
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  let next: ReadonlyMap<string, readonly Item[]> = new Map();
  const image = new ItemImage(store, { refresh: () => next, close: () => undefined });
  const change = (owner: string, one: Item): void => {
    next = new Map([[owner, [one]]]);
    upsertRaw(store, rawService("any", { clusterIP: "10.96.0.1" }));
    upsertRaw(store, rawService("any", { clusterIP: "10.96.0.2" }));
    image.changesFrom(new Map(), image.revision);
  };
  change("old", item("old", 0));
  change("busy", item("busy-0", 0));
  const held = new Map([item("old", 0), item("busy-0", 0)].map((one) => [one.path, one]));
  const since = image.revision;
  change("old", item("old", 1));
  // Each time under another path: one that changes again and again is remembered once.
  for (let count = 1; count <= 9_000; count++) change("busy", item(`busy-${count}`, 0));
  const reported = image
    .changesFrom(held, since)
    ?.map(({ path, after }) => `${path} ${after?.bytes.equals(item(path, path === "old" ? 1 : 0).bytes)}`);
  expect(reported?.toSorted()).toEqual(["busy-0 undefined", "busy-9000 true", "old true"]);
});
