import { describe, expect, it } from "vitest";
import { applyChangeSet } from "./change-set.ts";
import type { ChangeSet, ServicePort } from "./rows.ts";
import { rawService } from "../testing/objects.ts";
import { rowsOf } from "../testing/view.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => [...rowsOf([rawService(name)]).values()][0]) as [ServicePort, ServicePort, ServicePort];
const HELD: ReadonlyMap<string, ServicePort> = new Map([a, b].map((row) => [row.key, row]));

function changeSet(parts: Partial<ChangeSet>): ChangeSet {
  return { instance: "x", revision: 2, family: "IPv4", full: false, set: [], delete: [], triggersMs: [], ...parts };
}

describe("R-57 applying a change set", () => {
  it.each([
    ["sets and deletes", { set: [c], delete: [a.key] }, [b, c]],
    ["replaces", { set: [{ ...a, affinitySeconds: 5 }] }, [{ ...a, affinitySeconds: 5 }, b]],
    ["deleting what is not there is nothing", { delete: [c.key] }, [a, b]],
    ["full replaces everything", { full: true, set: [c] }, [c]],
    ["full and empty leaves nothing", { full: true }, []],
  ])("%s", (_name, parts, expected) => {
    expect([...applyChangeSet(HELD, changeSet(parts)).values()]).toEqual(expected);
    expect([...HELD.values()]).toEqual([a, b]);
  });
});
