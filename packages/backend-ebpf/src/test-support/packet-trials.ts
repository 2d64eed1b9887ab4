// What packets-kernel.test.ts has tried with packets of its own making: each is given to a program, which says what becomes of it.
import { fileURLToPath } from "node:url";
import { createBpf } from "@turnout/host/bpf";
import type { BpfProgram } from "@turnout/host/bpf";
import { REFUSED_MARK } from "../packets/nft-table.ts";
import { flows, run } from "./network.ts";
import { place } from "./place.ts";
import { elementsIn, mapChoices, proxyOf, startFlips } from "./proxy.ts";
import type { Proxy } from "./proxy.ts";
import { PROTOCOL, rawPacket } from "../testing/raw-packets.ts";
import type { RawPacket } from "../testing/raw-packets.ts";
import { FACTS, OPTIONS } from "./states.ts";

const { objectFile } = place;
const KFUNCS = fileURLToPath(new URL("../../dist/test-support/kfuncs.bpf.o", import.meta.url));

/** What a program of tc returns for a packet that goes on; 2 is for one that is dropped. @source linux/pkt_cls.h */
const NEXT = -1;

/** @source linux/tcp.h */
const FLAGS = { syn: 0x02, ack: 0x10, data: 0x18, fin: 0x11, reset: 0x04, resetAck: 0x14 } as const;

/** How many clients come in `crowd`: twice as many as the map has elements. */
const CROWD = 2048;

/** How many flows `flips` begins. */
const FLOWS = 10_000;

/** A datagram from outside to service number 3 of states.ts. */
const FOUR: RawPacket = { from: "203.0.113.5", fromPort: 40_000, to: "10.96.0.3", toPort: 80, protocol: PROTOCOL.udp };
const SIX: RawPacket = { ...FOUR, from: "fd00:113::5", to: "fd00:96::3" };

/** Packets that are refused. */
const READ: Readonly<Record<string, RawPacket>> = {
  four: FOUR,
  fourByTcp: { ...FOUR, protocol: PROTOCOL.tcp },
  fourWithOptions: { ...FOUR, options: 8 },
  fourFirstFragment: { ...FOUR, fragment: 0 },
  six: SIX,
  sixByTcp: { ...SIX, protocol: PROTOCOL.tcp },
  sixWithHeaders: { ...SIX, extensions: [PROTOCOL.hopByHop, PROTOCOL.destination, PROTOCOL.routing] },
  sixFirstFragment: { ...SIX, extensions: [PROTOCOL.fragment, PROTOCOL.destination], fragment: 0 },
};

/** Packets that are left alone. */
const OTHERS: Readonly<Record<string, RawPacket>> = {
  fourLaterFragment: { ...FOUR, fragment: 1 },
  sixLaterFragment: { ...SIX, extensions: [PROTOCOL.fragment], fragment: 1 },
  sixTooManyHeaders: { ...SIX, extensions: Array.from({ length: 7 }, () => PROTOCOL.destination) },
  sctp: { ...FOUR, protocol: PROTOCOL.sctp },
  icmp: { ...FOUR, protocol: PROTOCOL.icmp },
  withoutPorts: { ...FOUR, length: 2 },
  notIP: { ...FOUR, type: 0x0806 },
  anothers: { ...FOUR, isAnothers: true },
  otherPort: { ...FOUR, toPort: 81 },
};

/** Which of these packets have not the mark `expected` afterwards; `before` is the one they come with. */
function misread(program: BpfProgram, packets: Readonly<Record<string, RawPacket>>, before: number, expected: number): readonly string[] {
  return Object.entries(packets).flatMap(([name, packet]) => {
    const { code, fields } = program.testRun({ packet: rawPacket(packet), fields: { mark: before } });
    return code === NEXT && fields.mark === expected ? [] : [`${name}: code ${code}, mark ${fields.mark}`];
  });
}

/** The programs in a network namespace that has nothing but the loopback device. */
async function programs(): Promise<Proxy & { readonly judge: (program: string, packet: RawPacket, ingressIfindex?: number) => number }> {
  run("ip", ["link", "set", "lo", "up"]);
  const proxy = proxyOf(await createBpf().load(objectFile, { maps: mapChoices() }));
  return {
    ...proxy,
    judge: (program, packet, ingressIfindex = 0) =>
      proxy.object.program(program).testRun({ packet: rawPacket(packet), fields: { ingressIfindex } }).code,
  };
}

/** By name; each in a network namespace of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  // Which packets are read, whatever mark they had; the others keep theirs.
  async readings() {
    const { want, object } = await programs();
    want([
      { name: "nowhere", number: 3 },
      { name: "nowhere-udp", number: 3, protocol: "UDP" },
    ]);
    const program = object.program("turnout_in");
    return [
      ...misread(program, READ, 0, REFUSED_MARK),
      ...misread(program, READ, 0x4000, REFUSED_MARK),
      ...misread(program, OTHERS, 0, 0),
      ...misread(program, OTHERS, 0x4000, 0x4000),
    ];
  },

  // Whose packet it is, by its source address. There is no route here, so what is masqueraded gets the primary address.
  async origins() {
    const { want, judge } = await programs();
    const spec = { type: "NodePort", nodePort: 30005, externalTrafficPolicy: "Local" };
    want([{ name: "elsewhere", number: 5, remote: 1, spec }], {
      addresses: { IPv4: [...FACTS.addresses.IPv4, "10.1.1.1"], IPv6: FACTS.addresses.IPv6 },
    });
    const packet = { ...FOUR, to: "172.18.0.1", toPort: 30_005, protocol: PROTOCOL.tcp };
    const from = (address: string): number => judge("turnout_in", { ...packet, from: address });
    return {
      outside: from("203.0.113.5"),
      pod: from("10.1.1.90"),
      host: from("172.18.0.1"),
      // One of the host's addresses is in the range of its pods.
      hostsPodAddress: from("10.1.1.1"),
      atPods: judge("turnout_in_pods", packet),
      flows: flows("172.18.0.1"),
    };
  },

  // Packets of the host's own, which sockets let go, and packets that came in elsewhere.
  async out() {
    const { want, judge, counted } = await programs();
    want([
      { name: "elsewhere", number: 4, remote: 1, spec: { internalTrafficPolicy: "Local" } },
      { name: "plain", number: 1, local: 1 },
      { name: "nowhere", number: 3 },
      {
        name: "ranged",
        number: 6,
        local: 1,
        spec: { type: "LoadBalancer", loadBalancerSourceRanges: ["203.0.113.0/24"] },
        loadBalancerIPs: ["198.51.100.6"],
      },
    ]);
    const packet = { ...FOUR, from: "172.18.0.1", protocol: PROTOCOL.tcp };
    const to = (address: string, ingressIfindex?: number): number => judge("turnout_out", { ...packet, to: address }, ingressIfindex);
    return {
      dropped: [to("10.96.0.4"), to("10.96.0.3"), to("198.51.100.6")],
      six: judge("turnout_out", { ...packet, from: "fd00:18::1", to: "fd00:96::4" }),
      counted: counted("ranged")["outside"],
      sent: [to("10.96.0.1"), to("10.96.0.99"), to("10.96.0.4", 1)],
    };
  },

  // TCP whose flow conntrack doesn't know: a connection goes on where it can, and its end goes nowhere.
  async strays() {
    const { want, judge } = await programs();
    want([{ name: "plain", number: 1, local: 1 }]);
    const packet = { ...FOUR, to: "10.96.0.1", protocol: PROTOCOL.tcp };
    const codes = Object.entries(FLAGS).map(([name, flags], index) => [
      name,
      judge("turnout_in", { ...packet, flags, from: `203.0.113.${index}` }),
    ]);
    return { codes: Object.fromEntries(codes) as unknown, flows: flows("10.96.0.1"), count: Number(run("conntrack", ["-C"])) };
  },

  // New flows while the endpoints of the service are replaced: none is dropped, none goes to another service's endpoint.
  async flips() {
    const at = await programs();
    const stop = await startFlips(at);
    const codes = new Set<number>();
    for (let fromPort = 1; fromPort <= FLOWS; fromPort += 1) {
      const packet = rawPacket({ ...FOUR, to: "10.96.0.1", fromPort });
      codes.add(at.object.program("turnout_in").testRun({ packet }).code);
    }
    const rounds = await stop();
    return { codes: [...codes], flows: flows("10.96.0.1"), isMany: rounds > 500 };
  },

  // Many clients of a Service with affinity: how many are remembered, and whether the last one is.
  async crowd() {
    const { want, judge, map } = await programs();
    want([{ name: "crowded", number: 7, local: 3, spec: { sessionAffinity: "ClientIP" } }], {
      options: { ...OPTIONS, sizes: { ...OPTIONS.sizes, affinity: 1024 } },
    });
    const affinity = map("affinity");
    const packet = { ...FOUR, to: "10.96.0.7", protocol: PROTOCOL.tcp, flags: FLAGS.syn };
    for (let at = 0; at < CROWD; at += 1) judge("turnout_in", { ...packet, from: `100.64.${at >> 8}.${at & 255}` });
    const [remembered, share] = [(await elementsIn(affinity)).length, affinity.info.maxEntries / 4];
    return { isShared: remembered <= share, isUsed: remembered > 0.9 * share };
  },

  // What the kernel's functions say to a flow of each protocol. If SCTP is no longer EPROTO (71), the packet half can have it.
  async kfuncs() {
    const program = (await createBpf().load(KFUNCS)).program("try_protocol");
    const answer = (protocol: number): number => program.testRun({ packet: rawPacket(FOUR), fields: { priority: protocol } }).fields.mark;
    return { tcp: answer(PROTOCOL.tcp), udp: answer(PROTOCOL.udp), sctp: answer(PROTOCOL.sctp) };
  },
};
