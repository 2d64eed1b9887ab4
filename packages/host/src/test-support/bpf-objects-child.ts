// Run by bpf/objects-kernel.test.ts in network and mount namespaces of its own; prints what it saw as JSON.
import { createBpf } from "../bpf/bpf.ts";
import { verifierLogOf } from "../bpf/object.ts";
import { probeBpf } from "../bpf/probe.ts";
import {
  BPFFS,
  enterCgroup,
  hits,
  mountBpffs,
  numbered,
  objectFile,
  openFiles,
  runScenario,
  prefix,
  refusal,
  u32,
  udpPacket,
} from "./bpf-scene.ts";
import { tool } from "./tool.ts";

const bpf = createBpf();
const EXAMPLE = objectFile("example");
const PINS = `${BPFFS}/turnout`;
/** The one that this test may use. */
const cgroupFolder = process.argv[3] ?? "";

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async probe() {
    const before = await probeBpf();
    mountBpffs();
    const { missing, bpffs, cgroup2, ...rest } = await probeBpf();
    const lines = Array.from(missing, ([feature, error]) => `${feature}: ${error.message}`);
    return { bpffs, cgroup2: cgroup2 !== undefined, ...rest, missing: lines, before: before.bpffs === undefined };
  },

  async probeWithoutRights() {
    const { missing } = await probeBpf();
    return {
      missing: Array.from(missing, ([feature, error]) => `${feature}: ${error.code}`),
      rights: missing.get("rights")?.message,
      load: await refusal(() => bpf.load(EXAMPLE)),
      map: await refusal(() => bpf.createMap({ name: "m", type: "hash", keySize: 4, valueSize: 4, maxEntries: 1 })),
    };
  },

  // In this mount namespace alone there is nothing where libbpf and the kernel's types are.
  async probeInVain() {
    tool("mount", "--bind", "/dev/null", "/sys/kernel/btf/vmlinux");
    const withoutTypes = await probeBpf();
    return {
      btf: withoutTypes.missing.get("btf")?.message,
      conntrack: withoutTypes.missing.get("conntrack")?.message,
      others: [...withoutTypes.missing.keys()].filter((feature) => feature !== "btf" && feature !== "conntrack" && feature !== "bpffs"),
    };
  },

  async probeWithoutLibbpf() {
    const { missing, libbpf } = await probeBpf();
    return {
      libbpf: libbpf ?? null,
      message: missing.get("libbpf")?.message,
      untried: missing.get("links")?.message,
      load: await refusal(() => bpf.load(EXAMPLE)),
      hasSockets: !missing.has("socket-destroy"),
    };
  },

  // What this process may do with the rights that it was started with.
  async withFewRights() {
    enterCgroup(cgroupFolder);
    const { missing } = await probeBpf();
    const object = await bpf.load(EXAMPLE);
    const place = { ifindex: 1, direction: "ingress" } as const;
    const services = object.map("services");
    const attached = bpf.attachTc(object.program("on_ingress"), place, { priority: 1, handle: 1 });
    const refused = [
      await refusal(async () => (await bpf.load(objectFile("conntrack"))).close()),
      await refusal(() => services.updateMany(numbered(2))),
      await refusal(() => object.program("on_ingress").testRun({ packet: Buffer.alloc(60) })),
      await refusal(() => bpf.attachToCgroup(object.program("on_connect4"), cgroupFolder, "connect4").close()),
      await refusal(() => bpf.openMap({ id: services.info.id }).close()),
    ];
    object.close();
    if (attached.kind === "tcx") attached.link.close();
    return { missing: [...missing.keys()].filter((feature) => feature !== "bpffs"), refused };
  },

  async refusedObjects() {
    const said: string[] = [];
    let log: string | undefined;
    for (const [file, options] of [
      [objectFile("refused"), {}],
      [objectFile("unknown-kfunc"), {}],
      [objectFile("nothing"), {}],
      [process.execPath, {}],
      [EXAMPLE, { maps: { nothing: {} } }],
      [EXAMPLE, { without: ["nothing"] }],
    ] as const)
      said.push(
        await refusal(async () => {
          try {
            (await bpf.load(file, options)).close();
          } catch (error) {
            log ??= verifierLogOf(error);
            throw error;
          }
        }),
      );
    const rest = await bpf.load(objectFile("refused"), { without: ["careless"], withLogs: true });
    const logs = Array.from(rest.verifierLogs, ([program, text]) => `${program}: ${/processed \d+ insns/.test(text)}`);
    const programs = [...rest.programs.keys()];
    const absent = await refusal(() => rest.program("careless"));
    rest.close();
    const closed = await refusal(() => rest.map("marks").lookup(u32(0)));
    return { said, log: log?.split("\n").some((line) => line.startsWith("processed ")), logs, programs, absent, closed };
  },

  async testRun() {
    const object = await bpf.load(EXAMPLE);
    const program = object.program("on_ingress");
    object.map("sources").update(prefix("192.0.2.0", 24), u32(77));
    const packet = udpPacket("192.0.2.9", "10.96.0.10", 5000, 53);
    const passed = program.testRun({ packet, fields: { mark: 1, priority: 5 } });
    const changed = Array.from(passed.packet.keys()).filter((at) => passed.packet[at] !== packet[at]);
    const dropped = program.testRun({ packet: udpPacket("198.51.100.9", "10.96.0.10", 5000, 53) });
    const other = program.testRun({ packet: Buffer.alloc(60), repeat: 1000 });
    const counters = [hits(object.map("hits"), 2), hits(object.map("hits"), 3)];
    const noEthernet = await refusal(() => program.testRun({ packet: Buffer.alloc(13) }));
    const hook = await refusal(() => object.program("on_connect4").testRun({ packet }));
    object.close();
    return {
      passed: { code: passed.code, fields: passed.fields, changed, port: passed.packet.readUInt16BE(36) },
      dropped: { code: dropped.code, isSame: dropped.packet.length === packet.length },
      other: { code: other.code, isTimed: other.durationNs > 0 },
      counters,
      noEthernet,
      hook,
    };
  },

  async conntrack() {
    const object = await bpf.load(objectFile("conntrack"));
    const program = object.program("on_flow");
    const packet = udpPacket("192.0.2.9", "10.96.0.10", 5000, 53);
    const before = program.testRun({ packet }).fields.mark;
    tool(
      "conntrack",
      ..."-I -p udp -s 192.0.2.9 -d 10.96.0.10 --sport 5000 --dport 53 -r 10.1.0.5 -q 192.0.2.9 --reply-port-src 53 --reply-port-dst 5000 -t 600".split(
        " ",
      ),
    );
    const after = program.testRun({ packet }).fields.mark;
    object.close();
    // IPS_CONFIRMED
    return { before: before.toString(16), isKnown: (after & 8) !== 0 && after >>> 16 === 0 };
  },

  // Every way of opening something, also those that fail, and what is left open then.
  async leaks() {
    mountBpffs();
    const cgroup = enterCgroup(cgroupFolder);
    tool("ip", "link", "set", "lo", "up");
    const round = async (): Promise<void> => {
      await probeBpf();
      const object = await bpf.load(EXAMPLE, { maps: { services: { pin: `${PINS}/services` } } });
      const link = bpf.attachToCgroup(object.program("on_connect4"), cgroup, "connect4");
      link.pin(`${PINS}/link`, "replace");
      const attached = bpf.attachTc(object.program("on_ingress"), { ifindex: 1, direction: "ingress" }, { priority: 1, handle: 1 });
      if (attached.kind === "tcx") attached.link.close();
      else attached.filter.detach();
      object.program("on_connect4").pin(`${PINS}/program`, "replace");
      for (const one of [bpf.openMap({ pin: `${PINS}/services` }), bpf.openProgram(`${PINS}/program`), bpf.openLink(`${PINS}/link`)])
        one.close();
      for (const run of [
        () => bpf.openLink(`${PINS}/services`),
        () => bpf.openMap({ pin: `${PINS}/link` }),
        () => bpf.openMap({ id: 0x7fff_ffff }),
        () => bpf.load(objectFile("refused")),
        () => bpf.load(objectFile("unknown-kfunc")),
        () => bpf.load(EXAMPLE, { maps: { origins: { pin: `${PINS}/services` }, hits: { pin: `${PINS}/hits` } } }),
        // The second of two maps can't be pinned: the first one's pin goes again.
        () => bpf.load(EXAMPLE, { maps: { sources: { pin: `${PINS}/sources` }, settings: { pin: `${PINS}/services/below` } } }),
        () => bpf.attachToCgroup(object.program("on_ingress"), cgroup, "connect4"),
        () => bpf.attachToCgroup(object.program("on_connect4"), `${cgroup}/nothing`, "connect4"),
        () => bpf.createMap({ name: "m", type: "hash", keySize: 0, valueSize: 4, maxEntries: 1 }),
      ])
        if ((await refusal(run)) === "nothing") throw new Error(`not refused: ${run.toString()}`);
      const map = bpf.createMap({ name: "m", type: "hash", keySize: 8, valueSize: 8, maxEntries: 20_000 });
      // Closed while it is written: what is under way ends first, and the rest isn't begun.
      const writing = refusal(() => map.updateMany(numbered(20_000)));
      map.close();
      if (!(await writing).includes("closed")) throw new Error("a closed map was written");
      link.close();
      object.close();
      bpf.pins(PINS);
    };
    await round();
    const before = openFiles();
    const pinsBefore = bpf.pins(PINS).map(({ path }) => path.slice(PINS.length));
    for (let at = 0; at < 5; at += 1) await round();
    return { more: openFiles() - before, pins: pinsBefore };
  },
};

await runScenario(scenarios);
