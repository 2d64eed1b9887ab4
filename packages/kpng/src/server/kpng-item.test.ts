import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { describe, expect, test } from "vitest";
import { shortOp } from "../test-support/kpng-watcher.ts";
import { makeItem, opsOf, type ItemChange, type ItemKind } from "./kpng-item.ts";

/** Two items of a kind that come, and two that go, told in no order. */
function changesOf(kind: ItemKind): readonly ItemChange[] {
  const item = (path: string): ReturnType<typeof makeItem> => makeItem(kind, localv1.Set.EndpointsSet, path, new Uint8Array());
  return ["b", "a"].flatMap((name) => [
    { path: `${kind}/gone-${name}`, before: item(`${kind}/gone-${name}`), after: undefined },
    { path: `${kind}/new-${name}`, before: undefined, after: item(`${kind}/new-${name}`) },
  ]);
}

const set = (kind: string): readonly string[] => [`set ${kind}/new-a`, `set ${kind}/new-b`];
const gone = (kind: string): readonly string[] => [`delete ${kind}/gone-b`, `delete ${kind}/gone-a`];

describe("the order of operations, as clients of kpng's are used to it", () => {
  test("of one node", () => {
    const changes = (["anonymous", "pod", "service"] as const).flatMap(changesOf);
    expect([...opsOf(changes)].map(shortOp)).toEqual(
      [set("service"), gone("anonymous"), set("pod"), gone("pod"), set("anonymous"), gone("service")].flat(),
    );
  });

  test("of the cluster", () => {
    const changes = (["endpoint", "service", "node"] as const).flatMap(changesOf);
    expect([...opsOf(changes)].map(shortOp)).toEqual(
      [set("node"), set("service"), set("endpoint"), gone("endpoint"), gone("service"), gone("node")].flat(),
    );
  });
});
