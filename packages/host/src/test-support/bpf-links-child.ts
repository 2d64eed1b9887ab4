// Run by bpf/links-kernel.test.ts in network and mount namespaces of its own; prints what it saw as JSON.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { createBpf } from "../bpf/bpf.ts";
import { BPFFS, enterCgroup, hits, keysOf, mountBpffs, objectFile, runScenario, refusal, target, tool } from "./bpf-scene.ts";

const bpf = createBpf();
const EXAMPLE = objectFile("example");
const PINS = `${BPFFS}/turnout`;
/** The one that this test may use. */
const cgroupFolder = process.argv[3] ?? "";

/** Connect, and say whom the program thinks it is talking to and what came; or why not. */
async function talk(address: string, port: number): Promise<string> {
  const socket: Socket = connect(port, address);
  try {
    await once(socket, "connect");
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    const [said] = (await once(socket, "data")) as [Buffer];
    return `${peer} says ${said.toString()}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}

async function serve(): Promise<{ readonly port: number; close(): void }> {
  tool("ip", "link", "set", "lo", "up");
  const server = createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

function ifindexOf(device: string): number {
  return Number(/^(\d+):/.exec(tool("ip", "-o", "link", "show", "dev", device))?.[1]);
}

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async connect() {
    const cgroup = enterCgroup(cgroupFolder);
    const server = await serve();
    const object = await bpf.load(EXAMPLE, { maps: { services: { maxEntries: 1024 } } });
    const services = object.map("services");
    services.update(target("10.96.0.10", 80), target("127.0.0.1", server.port));
    services.update(target("10.96.0.11", 80), target("127.0.0.1", server.port, 1));
    const link = bpf.attachToCgroup(object.program("on_connect4"), cgroup, "connect4");
    const named = bpf.attachToCgroup(object.program("on_getpeername4"), cgroup, "getpeername4");
    const first = [await talk("10.96.0.10", 80), await talk("10.96.0.11", 80)];
    const info = link.info();
    const isOurs = info.kind === "cgroup" && info.hook === "connect4" && info.programId === object.program("on_connect4").info.id;
    link.update(object.program("next_connect4"));
    const second = await talk("10.96.0.10", 80);
    const counters = [hits(object.map("hits"), 0), hits(object.map("hits"), 1)];
    const wrongType = await refusal(() => link.update(object.program("on_ingress")));
    const wrongHook = await refusal(() => bpf.attachToCgroup(object.program("on_connect4"), cgroup, "connect6"));
    link.detach();
    const after = link.info();
    const direct = hits(object.map("hits"), 1);
    const third = await talk("127.0.0.1", server.port);
    const isQuiet = hits(object.map("hits"), 1) === direct;
    for (const one of [link, named, object]) one.close();
    server.close();
    return {
      maxEntries: services.info.maxEntries,
      first,
      isOurs,
      second,
      counters,
      wrongType,
      wrongHook: wrongHook.replaceAll(cgroup, "CGROUP"),
      detached: after.kind === "cgroup" && after.cgroupId === 0n,
      third: third.replace(/:\d+/, ""),
      isQuiet,
    };
  },

  // What a process that is killed leaves pinned goes on, and is taken over by the next one.
  async adopt() {
    mountBpffs();
    const cgroup = enterCgroup(cgroupFolder);
    const server = await serve();
    const pins = { services: { pin: `${PINS}/services`, maxEntries: 64 }, hits: { pin: `${PINS}/hits` } };
    const first = await bpf.load(EXAMPLE, { maps: pins });
    first.map("services").update(target("10.96.0.10", 80), target("127.0.0.1", server.port));
    first.program("on_connect4").pin(`${PINS}/programs/on_connect4`);
    const link = bpf.attachToCgroup(first.program("on_connect4"), cgroup, "connect4");
    link.pin(`${PINS}/links/connect4`);
    const twice = await refusal(() => link.pin(`${PINS}/links/connect4`));
    for (const one of [link, first]) one.close();
    const standalone = await talk("10.96.0.10", 80);
    const second = await bpf.load(EXAMPLE, { maps: pins });
    const services = second.map("services");
    const kept = (await keysOf(services)).length;
    const adopted = bpf.openLink(`${PINS}/links/connect4`);
    adopted.update(second.program("next_connect4"));
    second.program("next_connect4").pin(`${PINS}/programs/on_connect4`, "replace");
    const upgraded = await talk("10.96.0.10", 80);
    const counters = [hits(second.map("hits"), 0), hits(second.map("hits"), 1)];
    const listed = bpf
      .pins(PINS)
      .map((pin) => `${pin.path.slice(PINS.length)} ${pin.kind} ${"name" in pin.info ? pin.info.name : pin.info.kind}`);
    const otherSize = await refusal(() => bpf.load(EXAMPLE, { maps: { ...pins, services: { ...pins.services, maxEntries: 65 } } }));
    const otherMap = await refusal(() => bpf.load(EXAMPLE, { maps: { origins: { pin: `${PINS}/services` } } }));
    const otherKind = await refusal(() => bpf.openProgram(`${PINS}/services`));
    const none = await refusal(() => bpf.openMap({ pin: `${PINS}/nothing` }));
    const byId = bpf.openMap({ id: services.info.id });
    const same = byId.info.name;
    const outside = await refusal(() => services.pin("/tmp/turnout-no-bpffs/services"));
    for (const one of [byId, adopted, second]) one.close();
    bpf.removePins(PINS);
    const removed = [existsSync(PINS), bpf.pins(PINS).length, await talk("10.96.0.10", 80).then((said) => said !== upgraded)];
    const noBpffs = await refusal(() => bpf.removePins("/proc/self"));
    server.close();
    return { twice, standalone, kept, upgraded, counters, listed, otherSize, otherMap, otherKind, none, same, outside, removed, noBpffs };
  },

  async tc() {
    mountBpffs();
    tool("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1");
    const ifindex = ifindexOf("veth0");
    const object = await bpf.load(EXAMPLE);
    const [program, same] = [object.program("on_ingress"), object.program("on_ingress")];
    const place = { ifindex, direction: "ingress" } as const;
    const filterName = { priority: 7, handle: 3 };
    const attached = bpf.attachTc(program, place, filterName);
    const link = attached.kind === "tcx" ? attached.link.info() : undefined;
    if (attached.kind === "tcx") {
      attached.link.pin(`${BPFFS}/turnout/veth0`);
      attached.link.update(same);
      attached.link.close();
    } else attached.filter.detach();
    const pinned = bpf
      .pins(`${BPFFS}/turnout`)
      .map(({ info }) => ("kind" in info && info.kind === "tcx" ? [info.ifindex === ifindex, info.direction] : []));
    const none = bpf.clsactProgram(place, filterName);
    bpf.detachClsact(place, filterName);
    const filter = bpf.attachClsact(program, place, filterName);
    const isOurs = bpf.clsactProgram(place, filterName) === program.info.id;
    filter.update(same);
    const shown = tool("tc", "filter", "show", "dev", "veth0", "ingress");
    filter.detach();
    filter.detach();
    const gone = bpf.clsactProgram(place, filterName);
    const nowhere = [
      await refusal(() => bpf.attachTc(program, { ...place, ifindex: 4_000_000 }, filterName)),
      await refusal(() => bpf.attachClsact(program, { ...place, ifindex: 4_000_000 }, filterName)),
    ];
    tool("ip", "link", "del", "veth0");
    const afterDevice = bpf.pins(`${BPFFS}/turnout`).map(({ info }) => ("ifindex" in info ? info.ifindex : -1));
    object.close();
    return {
      link: link?.kind === "tcx" && [link.ifindex === ifindex, link.direction, link.programId === program.info.id],
      pinned,
      none: none ?? null,
      isOurs,
      shown: /pref 7 .*handle 0x3 .*on_ingress.*direct-action/.test(shown.replaceAll("\n", " ")),
      gone: gone ?? null,
      nowhere,
      afterDevice,
    };
  },
};

await runScenario(scenarios);
