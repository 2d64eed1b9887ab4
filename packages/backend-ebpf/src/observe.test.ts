import { FAMILIES, objectId } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import { SHOWCASE } from "@turnout/core/testing";
import type { Elements, LinkInfo } from "@turnout/host/bpf";
import { describe, expect, it } from "vitest";
import { elementsOf, isInMap, WRITTEN_MAPS } from "./bytes/elements.ts";
import type { WrittenMap } from "./bytes/elements.ts";
import { HOOKS } from "./hooks.ts";
import { encodeAddress, encodeDestination, encodeEndpoint, encodePlace, LIST_MAX, STRUCTS, VERDICTS } from "./bytes/layout.ts";
import type { EbpfObject, MapObject } from "./objects.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";
import { readLook } from "./observe.ts";
import type { Look } from "./observe.ts";
import { mapFolderOf } from "./names.ts";
import { encodeSourceRange, sortCIDRs } from "./bytes/ranges.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, OPTIONS, PARTS, stateOf } from "./test-support/states.ts";

const PROGRAMS = PARTS.programs.sockets;

function rendered(family: IPFamily, isKeeper: boolean): readonly EbpfObject[] {
  const { rows, node } = stateOf(SHOWCASE, family);
  const context = { node, host: { ...FACTS, optedOut: ["12"] } };
  return [...renderSkeleton(context, { ...PARTS, isKeeper }), ...[...rows.values()].flatMap((row) => renderRow(row, context, OPTIONS))];
}

/** What maps hold when these objects are written, in parts of a few elements, the last ones first. */
function held(objects: readonly MapObject[]): ReadonlyMap<WrittenMap, readonly Elements[]> {
  const all = objects.flatMap(elementsOf).toReversed();
  return new Map(
    WRITTEN_MAPS.map((map) => {
      const own = all.filter((element) => element.map === map);
      const parts = Array.from({ length: Math.ceil(own.length / 3) }, (_, index) => own.slice(index * 3, index * 3 + 3));
      return [
        map,
        parts.map((part) => ({
          count: part.length,
          keys: Buffer.concat(part.map(({ key }) => key)),
          values: Buffer.concat(part.map(({ value }) => value)),
        })),
      ];
    }),
  );
}

function linkAt(name: string, change: Partial<LinkInfo> = {}): LinkInfo {
  return { id: 1, programId: 2, kind: "cgroup", cgroupId: 7n, hook: HOOKS[name], ...change } as LinkInfo;
}

function tcxAt(ifindex: number, direction: "ingress" | "egress"): LinkInfo {
  return { id: 1, programId: 2, kind: "tcx", ifindex, direction };
}

const LINKS: Look["links"] = new Map([
  ...Object.keys(HOOKS).map((name) => [name, { info: linkAt(name), programs: PROGRAMS, program: name }] as const),
  ...[2, 3].flatMap((index) => [
    [`${index}-ingress`, { info: tcxAt(index, "ingress"), programs: PARTS.programs.packets, program: "turnout_in" }] as const,
    [`${index}-egress`, { info: tcxAt(index, "egress"), programs: PARTS.programs.packets, program: "turnout_out" }] as const,
  ]),
]);
const EMPTY: Look = { elements: new Map(), links: new Map(), filters: new Map(), table: undefined, filled: [], serving: [], folders: [] };

function byId(objects: Iterable<EbpfObject>): ReadonlyMap<string, EbpfObject> {
  return new Map([...objects].map((object) => [objectId(object), object]));
}

describe("readLook", () => {
  it.each(FAMILIES)("gives what was rendered of %s, and what both share to the keeper alone", (family) => {
    const both = [...rendered("IPv4", true), ...rendered("IPv6", false)].filter(isInMap);
    const look: Look = {
      ...EMPTY,
      elements: held(both),
      links: LINKS,
      table: TABLE_OBJECT,
      filled: ["IPv4", "IPv6"],
      serving: ["IPv4", "IPv6"],
    };
    expect(readLook(look, { family, isKeeper: true })).toEqual({ objects: byId(rendered(family, true)), lingering: [] });
    expect(readLook(look, { family, isKeeper: false }).objects).toEqual(byId(rendered(family, false)));
  });

  it("tells holes of a list, and what can be none of ours", () => {
    const [list, far] = ["1".repeat(16), "2".repeat(16)];
    const elements = new Map<WrittenMap, readonly Elements[]>([
      [
        "endpoints",
        [
          { count: 1, keys: encodePlace(list, 2), values: encodeEndpoint("10.1.2.3:80") },
          { count: 1, keys: encodePlace(far, LIST_MAX), values: encodeEndpoint("10.1.2.3:80") },
        ],
      ],
      ["services", [{ count: 1, keys: encodeDestination("10.96.0.1:80/TCP"), values: Buffer.alloc(STRUCTS.service.bytes) }]],
      ["source_ranges", [{ count: 1, keys: Buffer.alloc(STRUCTS.source_range.bytes), values: Buffer.from([1, 0, 0, 0]) }]],
      ["pod_ranges", [{ count: 1, keys: Buffer.alloc(STRUCTS.pod_range.bytes, 0xff), values: Buffer.from([1, 0, 0, 0]) }]],
      ["primaries", [{ count: 1, keys: encodeAddress("10.1.1.1"), values: encodeAddress("10.1.1.2") }]],
      ["node_addresses", [{ count: 1, keys: encodeAddress("10.1.1.1"), values: Buffer.alloc(4) }]],
      ["settings", [{ count: 1, keys: Buffer.alloc(4), values: Buffer.alloc(8) }]],
    ]);
    const { objects } = readLook({ ...EMPTY, elements }, { family: "IPv4", isKeeper: true });
    const strays = [...objects.values()].filter((object): object is MapObject => object.kind === "stray");
    expect(objects.get(`list ${list}`)?.value).toEqual(["", "", "10.1.2.3:80"]);
    expect(strays.flatMap(elementsOf).map(({ map, key }) => `${map} ${key.toString("hex")}`)).toEqual([
      `endpoints ${encodePlace(far, LIST_MAX).toString("hex")}`,
      `services ${encodeDestination("10.96.0.1:80/TCP").toString("hex")}`,
      `source_ranges ${"00".repeat(STRUCTS.source_range.bytes)}`,
      `pod_ranges ${"ff".repeat(STRUCTS.pod_range.bytes)}`,
      `primaries ${encodeAddress("10.1.1.1").toString("hex")}`,
      `node_addresses ${encodeAddress("10.1.1.1").toString("hex")}`,
    ]);
    expect(objects.size).toBe(7);
  });

  it("takes an element for a stray whose bytes that mean nothing aren't 0, or whose value is another than is written", () => {
    const key = encodeDestination("10.96.0.1:80/TCP");
    key[STRUCTS.destination.fields.zero[0]] = 1;
    const endpoint = encodeEndpoint("10.1.2.3:80");
    endpoint[STRUCTS.endpoint.fields.zero[0]] = 1;
    const reject = Buffer.alloc(STRUCTS.service.bytes);
    for (const origin of ["pod", "host", "outside"] as const)
      reject[STRUCTS.service.fields[origin][0] + STRUCTS.choice.fields.verdict[0]] = VERDICTS.reject;
    const elements = new Map<WrittenMap, readonly Elements[]>([
      ["services", [{ count: 1, keys: key, values: reject }]],
      ["endpoints", [{ count: 1, keys: encodePlace("1".repeat(16), 0), values: endpoint }]],
      ["source_ranges", [{ count: 1, keys: encodeSourceRange("1".repeat(16), "10.0.0.0/8"), values: Buffer.alloc(4) }]],
    ]);
    const { objects } = readLook({ ...EMPTY, elements }, { family: "IPv4", isKeeper: true });
    expect([...objects.values()].map(({ kind, value }) => [kind, kind === "list" ? value : ""])).toEqual([
      ["stray", ""],
      ["stray", ""],
      ["list", [""]],
    ]);
  });

  it("tells ranges to which another hand added, and of which one is missing", () => {
    const keys = ["198.51.100.0/24", "10.0.0.0/8"].map((one) => encodeSourceRange("1".repeat(16), one));
    const elements = new Map<WrittenMap, readonly Elements[]>([
      ["source_ranges", [{ count: 2, keys: Buffer.concat(keys), values: Buffer.from([1, 0, 0, 0, 1, 0, 0, 0]) }]],
    ]);
    const { objects } = readLook({ ...EMPTY, elements }, { family: "IPv4", isKeeper: false });
    expect(objects.get(`ranges ${"1".repeat(16)}`)?.value).toEqual(sortCIDRs(["10.0.0.0/8", "198.51.100.0/24"]));
  });

  it("takes a link for ours only where it is at its hook, and knows its program only where the maps are", () => {
    const links: Look["links"] = new Map([
      ["turnout_conn4", { info: linkAt("turnout_conn6"), programs: PROGRAMS, program: "turnout_conn4" }],
      ["turnout_conn6", { info: { id: 1, programId: 2, kind: "other", type: 9 }, programs: "", program: "" }],
    ]);
    const read = (look: Look): readonly unknown[] =>
      [...readLook(look, { family: "IPv4", isKeeper: true }).objects.values()].map(({ value }) => value);
    expect(read({ ...EMPTY, links })).toEqual([
      { cgroup: "0", programs: PROGRAMS },
      { cgroup: "0", programs: "" },
    ]);
    expect(read({ ...EMPTY, elements: undefined, links: LINKS })[0]).toEqual({ cgroup: "7", programs: "" });
    const folders = [mapFolderOf(PROGRAMS)];
    expect(read({ ...EMPTY, elements: undefined, links: LINKS, folders })[0]).toEqual({ cgroup: "7", programs: PROGRAMS });
  });

  it("takes a link at a device for ours only where the device is there, and knows filters of clsact", () => {
    const pin = { programs: PARTS.programs.packets, program: "turnout_in" };
    const links: Look["links"] = new Map([
      ["7-ingress", { info: tcxAt(0, "ingress"), ...pin }],
      ["8-ingress", { info: tcxAt(8, "egress"), ...pin }],
      ["9-ingress", { info: tcxAt(9, "ingress"), ...pin }],
    ]);
    const filters: Look["filters"] = new Map([
      ["5-ingress", pin],
      ["5-egress", { programs: "", program: "" }],
    ]);
    const { objects } = readLook({ ...EMPTY, links, filters }, { family: "IPv4", isKeeper: true });
    const gone = { programs: "", program: "" };
    expect([...objects.values()].map(({ kind, key, value }) => [kind, key, value])).toEqual([
      ["device", "7-ingress", gone],
      ["device", "8-ingress", gone],
      ["device", "9-ingress", pin],
      ["device", "5-ingress", pin],
      ["device", "5-egress", gone],
    ]);
  });

  it("has folders of others for the keeper", () => {
    const look: Look = { ...EMPTY, folders: ["v0-0123456789abcdef"] };
    expect([...readLook(look, { family: "IPv6", isKeeper: true }).objects.keys()]).toEqual(["folder v0-0123456789abcdef"]);
    expect(readLook(look, { family: "IPv6", isKeeper: false }).objects.size).toBe(0);
  });
});
