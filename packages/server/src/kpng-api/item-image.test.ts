import { localv1 } from "@turnout/client/protocol";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { rawService, upsertRaw } from "@turnout/core/testing";
import { expect, test } from "vitest";
import { ItemImage } from "./item-image.ts";
import { makeItem, type Item } from "./kpng-item.ts";

const item = (path: string, content: number): Item => makeItem("service", localv1.Set.ServicesSet, path, Buffer.from(String(content)));

test("a watcher that is further behind than changes are remembered is told of every difference", () => {
  const store = new Store({ keepsPodNames: true });
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  let next: readonly Item[] = [];
  const image = new ItemImage(store, { refresh: () => new Map(next.map((one) => [one.path, [one]])), close: () => undefined });
  const change = (...items: readonly Item[]): void => {
    next = items;
    upsertRaw(store, rawService("any", { clusterIP: "10.96.0.1" }));
    upsertRaw(store, rawService("any", { clusterIP: "10.96.0.2" }));
    image.changesFrom(new Map(), image.revision);
  };
  change(item("old", 0), item("busy", 0));
  const held = new Map([item("old", 0), item("busy", 0)].map((one) => [one.path, one]));
  const since = image.revision;
  change(item("old", 1));
  for (let count = 1; count <= 9_000; count++) change(item("busy", count));
  const told = image
    .changesFrom(held, since)
    ?.map(({ path, after }) => `${path} ${after?.bytes.equals(item(path, path === "old" ? 1 : 9_000).bytes)}`);
  expect(told?.toSorted()).toEqual(["busy true", "old true"]);
});
