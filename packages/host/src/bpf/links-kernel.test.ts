import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BPFFS, hits, keysOf, mountBpffs, objectFile, refusal, target } from "../test-support/bpf-scene.ts";
import { inOwnCgroup } from "../test-support/bpf-stage.ts";
import { inOwnNamespaces } from "../test-support/own-namespaces.ts";
import { tool } from "../test-support/tool.ts";
import { createBpf } from "./bpf.ts";

const bpf = createBpf();
const EXAMPLE = objectFile("example");
const PINS = `${BPFFS}/turnout`;
const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);

/** Connect, and say whom the program thinks it is talking to and what came; or why not. */
async function talk(address: string, port: number): Promise<string> {
  const socket = connect(port, address);
  try {
    await once(socket, "connect");
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    return `${peer} says ${String((await once(socket, "data"))[0])}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}

describe("links of a real kernel", needs("root", "netns", "bpf", "cgroup2", "ip"), () => {
  inOwnNamespaces({ withMounts: true });
  const cgroup = inOwnCgroup();
  let port = 0;
  beforeAll(() => buildBpf("packages/host"));
  beforeEach(async () => {
    mountBpffs();
    tool("ip", "link", "set", "lo", "up");
    const server = createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
    return () => void server.close();
  });

  it("sends connections elsewhere, refuses them, changes the program in place, and ends", async () => {
    const object = await bpf.load(EXAMPLE, { maps: { services: { maxEntries: 1024 } } });
    const services = object.map("services");
    expect(services.info.maxEntries).toBe(1024);
    services.update(target("10.96.0.10", 80), target("127.0.0.1", port));
    services.update(target("10.96.0.11", 80), target("127.0.0.1", port, 1));
    const program = object.program("on_connect4");
    const link = bpf.attachToCgroup(program, cgroup(), "connect4");
    const named = bpf.attachToCgroup(object.program("on_getpeername4"), cgroup(), "getpeername4");
    // The program that connects sees the address it asked for.
    expect([await talk("10.96.0.10", 80), await talk("10.96.0.11", 80)]).toEqual(["10.96.0.10:80 says hello", "EPERM"]);
    expect(link.info()).toMatchObject({ kind: "cgroup", hook: "connect4", programId: program.info.id });
    link.update(object.program("next_connect4"));
    expect(await talk("10.96.0.10", 80)).toBe("10.96.0.10:80 says hello");
    expect([hits(object.map("hits"), 0), hits(object.map("hits"), 1)]).toEqual([2, 1]);
    expect(await refusal(() => link.update(object.program("on_ingress")))).toMatch(
      /^\[tool_failed\] link of program on_connect4 at connect4 of .* can't be given another program \(EINVAL\): program on_ingress$/,
    );
    expect(await refusal(() => bpf.attachToCgroup(program, cgroup(), "connect6"))).toBe(
      `[tool_failed] a program can't be attached to a cgroup (EINVAL): program on_connect4 at connect6 of ${cgroup()}`,
    );
    link.detach();
    expect(link.info()).toMatchObject({ kind: "cgroup", cgroupId: 0n });
    const before = hits(object.map("hits"), 1);
    expect(await talk("127.0.0.1", port)).toBe(`127.0.0.1:${port} says hello`);
    expect(hits(object.map("hits"), 1)).toBe(before);
    for (const one of [link, named, object]) one.close();
  });

  // What a process that is killed leaves pinned goes on, and is taken over by the next one.
  it("goes on while nobody has it open, and is adopted and upgraded by its pins", async () => {
    const pins = { services: { pin: `${PINS}/services`, maxEntries: 64 }, hits: { pin: `${PINS}/hits` } };
    const first = await bpf.load(EXAMPLE, { maps: pins });
    first.map("services").update(target("10.96.0.10", 80), target("127.0.0.1", port));
    first.program("on_connect4").pin(`${PINS}/programs/on_connect4`);
    const link = bpf.attachToCgroup(first.program("on_connect4"), cgroup(), "connect4");
    link.pin(`${PINS}/links/connect4`);
    expect(await refusal(() => link.pin(`${PINS}/links/connect4`))).toMatch(
      /^\[already_exists\] .* can't be pinned \(EEXIST\): \/sys\/fs\/bpf\/turnout\/links\/connect4$/,
    );
    for (const one of [link, first]) one.close();
    const said = `127.0.0.1:${port} says hello`;
    expect(await talk("10.96.0.10", 80)).toBe(said);
    const second = await bpf.load(EXAMPLE, { maps: pins });
    const services = second.map("services");
    expect((await keysOf(services)).length).toBe(1);
    const adopted = bpf.openLink(`${PINS}/links/connect4`);
    adopted.update(second.program("next_connect4"));
    second.program("next_connect4").pin(`${PINS}/programs/on_connect4`, "replace");
    expect(await talk("10.96.0.10", 80)).toBe(said);
    expect([hits(second.map("hits"), 0), hits(second.map("hits"), 1)]).toEqual([1, 1]);
    expect(
      bpf.pins(PINS).map((pin) => `${pin.path.slice(PINS.length)} ${pin.kind} ${"name" in pin.info ? pin.info.name : pin.info.kind}`),
    ).toEqual(["/hits map hits", "/links/connect4 link cgroup", "/programs/on_connect4 program next_connect4", "/services map services"]);
    const layout = "[invalid_object] a pinned map has another layout than the programs: /sys/fs/bpf/turnout/services: ";
    const hint = ": pin the new layout under another path, or remove the old pins";
    const mount = ": mount one: mount -t bpf bpf /sys/fs/bpf";
    for (const [run, message] of [
      [
        () => bpf.load(EXAMPLE, { maps: { ...pins, services: { ...pins.services, maxEntries: 65 } } }),
        `${layout}maxEntries 64, wanted 65${hint}`,
      ],
      [
        () => bpf.load(EXAMPLE, { maps: { origins: { pin: `${PINS}/services` } } }),
        `${layout}type 1, wanted 9; maxEntries 64, wanted 16${hint}`,
      ],
      [() => bpf.openProgram(`${PINS}/services`), "[invalid_object] this is a map and no BPF program: /sys/fs/bpf/turnout/services"],
      [() => bpf.openMap({ pin: `${PINS}/nothing` }), "[not_found] what is pinned can't be opened (ENOENT): /sys/fs/bpf/turnout/nothing"],
      [
        () => services.pin("/tmp/turnout-no-bpffs/services"),
        `[host_unsupported] nothing can be pinned outside a bpffs: /tmp/turnout-no-bpffs/services${mount}`,
      ],
      [() => bpf.removePins("/proc/self"), `[host_unsupported] this folder isn't on a bpffs: /proc/self${mount}`],
    ] as const)
      expect(await refusal(run)).toBe(message);
    const byId = bpf.openMap({ id: services.info.id });
    expect(byId.info.name).toBe("services");
    for (const one of [byId, adopted, second]) one.close();
    bpf.removePins(PINS);
    expect([existsSync(PINS), bpf.pins(PINS)]).toEqual([false, []]);
    expect(await talk("10.96.0.10", 80)).not.toBe(said);
  });

  it("comes to a device by tcx and by clsact, and is told when the device is gone", needs("tc"), async () => {
    tool("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1");
    const ifindex = Number(/^(\d+):/.exec(tool("ip", "-o", "link", "show", "dev", "veth0"))?.[1]);
    const object = await bpf.load(EXAMPLE);
    const program = object.program("on_ingress");
    const place = { ifindex, direction: "ingress" } as const;
    const filterName = { priority: 7, handle: 3 };
    const attached = bpf.attachTc(program, place, filterName);
    if (attached.kind !== "tcx") throw new Error("this kernel lacks tcx");
    expect(attached.link.info()).toMatchObject({ ...place, kind: "tcx", programId: program.info.id });
    attached.link.pin(`${PINS}/veth0`);
    attached.link.update(program);
    attached.link.close();
    expect(bpf.pins(PINS)).toMatchObject([{ info: { ...place, kind: "tcx" } }]);
    expect(bpf.clsactProgram(place, filterName)).toBeUndefined();
    bpf.detachClsact(place, filterName);
    const filter = bpf.attachClsact(program, place, filterName);
    expect(bpf.clsactProgram(place, filterName)).toBe(program.info.id);
    filter.update(program);
    const shown = tool("tc", "filter", "show", "dev", "veth0", "ingress");
    expect(shown.replaceAll("\n", " ")).toMatch(/pref 7 .*handle 0x3 .*on_ingress.*direct-action/);
    filter.detach();
    filter.detach();
    expect(bpf.clsactProgram(place, filterName)).toBeUndefined();
    const nowhere = text(
      /^\[not_found\] a program can't be attached to a device, there is none of this number \(ENODEV\): program on_ingress at ingress of device 4000000, /,
    );
    expect([
      await refusal(() => bpf.attachTc(program, { ...place, ifindex: 4_000_000 }, filterName)),
      await refusal(() => bpf.attachClsact(program, { ...place, ifindex: 4_000_000 }, filterName)),
    ]).toEqual([nowhere, nowhere]);
    tool("ip", "link", "del", "veth0");
    expect(bpf.pins(PINS)).toMatchObject([{ info: { ifindex: 0 } }]);
    object.close();
  });
});
