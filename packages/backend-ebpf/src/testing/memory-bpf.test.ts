import { FaultSwitches } from "@turnout/conformance";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { MemoryBpf } from "./memory-bpf.ts";
import { MemoryKernel } from "./memory-kernel.ts";
import { OBJECT_FILES } from "./memory-machine.ts";

const ROOT = "/sys/fs/bpf";
const CGROUP = "/sys/fs/cgroup";

function make(): { readonly bpf: MemoryBpf; readonly kernel: MemoryKernel; readonly faults: FaultSwitches } {
  const faults = new FaultSwitches();
  const kernel = new MemoryKernel({ faults, bpffs: ROOT, cgroups: new Map([[CGROUP, 7n]]), devices: new Set([2]) });
  return { bpf: new MemoryBpf(kernel), kernel, faults };
}

const spec = { name: "test", type: "hash", keySize: 1, valueSize: 1, maxEntries: 3 } as const;

describe("batches of a map in memory", () => {
  it("stop at the element that finds no room, and say how far they came", async () => {
    const map = make().bpf.createMap(spec);
    const { done, refused } = await map.updateMany({ count: 5, keys: Buffer.from([1, 2, 1, 3, 4]), values: Buffer.alloc(5) });
    expect([done, refused?.code]).toEqual([4, "limit_reached"]);
    expect(await map.deleteMany(Buffer.from([1, 9, 2]))).toBe(2);
    let count = 0;
    for await (const part of map.read()) count += part.count;
    expect(count).toBe(1);
  });

  it.each([
    ["before", 0],
    ["during", 1],
  ] as const)("fail on command: %s", async (when, done) => {
    const { bpf, faults } = make();
    faults.setFault({ when, afterChanges: 0 });
    const outcome = await bpf.createMap(spec).updateMany({ count: 3, keys: Buffer.from([1, 2, 3]), values: Buffer.alloc(3) });
    expect([outcome.done, outcome.refused?.code]).toEqual([done, "limit_reached"]);
  });
});

describe("the compiled programs, loaded into a kernel in memory", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("share the maps that are pinned, unless their layout is another", async () => {
    const { bpf } = make();
    const maps = { services: { pin: `${ROOT}/x/services`, maxEntries: 10 } };
    const [first, second] = [await bpf.load(OBJECT_FILES.sockets, { maps }), await bpf.load(OBJECT_FILES.packets, { maps })];
    expect(second.map("services").info).toEqual({ ...first.map("services").info });
    expect(first.map("services").info).toMatchObject({ type: "hash", keySize: 20, maxEntries: 10, flags: 1 });
    expect(first.programs.size + second.programs.size).toBe(12);
    const other = bpf.load(OBJECT_FILES.sockets, { maps: { services: { pin: `${ROOT}/x/services`, maxEntries: 11 } } });
    await expect(other).rejects.toMatchObject({ code: "invalid_object" });
    await expect(bpf.load(OBJECT_FILES.sockets, { maps: { nothing: {} } })).rejects.toMatchObject({ code: "invalid_object" });
    await expect(bpf.load("/nowhere.o")).rejects.toMatchObject({ code: "not_found" });
  });

  it("are attached where their kind allows, as long as somebody holds the link", async () => {
    const { bpf, kernel } = make();
    const { programs } = await bpf.load(OBJECT_FILES.sockets);
    const [conn4, conn6] = [programs.get("turnout_conn4"), programs.get("turnout_conn6")];
    if (conn4 === undefined || conn6 === undefined) throw new Error("the programs are there");
    expect(() => bpf.attachToCgroup(conn4, CGROUP, "connect6")).toThrow(/EINVAL/);
    expect(() => bpf.attachTc(conn4, { ifindex: 2, direction: "ingress" })).toThrow(/EINVAL/);
    expect(() => bpf.attachToCgroup(conn4, "/nowhere", "connect4")).toThrow(/ENOENT/);
    const link = bpf.attachToCgroup(conn4, CGROUP, "connect4");
    expect(() => link.update(conn6)).toThrow(/EINVAL/);
    expect(() => link.pin(`${ROOT}/a.b`)).toThrow(/dot/);
    expect(() => link.pin("/tmp/a")).toThrow(/bpffs/);
    link.pin(`${ROOT}/links/a`);
    link.close();
    expect(kernel.programsAt("connect4")).toHaveLength(1);
    bpf.removePins(`${ROOT}/links`);
    expect([kernel.programsAt("connect4").length, bpf.pins(ROOT).length]).toEqual([0, 0]);
    bpf.attachToCgroup(conn4, CGROUP, "connect4").close();
    expect(kernel.programsAt("connect4")).toHaveLength(0);
  });
});
