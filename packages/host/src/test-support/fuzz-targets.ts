import type { FuzzTarget } from "@turnout/house/fuzz";
import type { IPFamily } from "@turnout/core";
import { TestClock } from "@turnout/core/testing";
import { parseMounts } from "../bpf/mounts.ts";
import { parseSocket, remoteKey } from "../bpf/sockets/socket-diag.ts";
import { complaintOf } from "../bpf/verifier-log.ts";
import { parseKernelVersion, parseNftVersion } from "../facts/probes.ts";
import { readSaved as readSets } from "../ipset/text/saved.ts";
import { readSaved as readRules } from "../iptables/text/saved.ts";
import { parseIptablesVersion } from "../iptables/tools.ts";
import { parseRealServer, parseService, parseTimeouts, parseVersion } from "../ipvs/answers.ts";
import { NetlinkChannel } from "../netlink/channel.ts";
import { parseEntry } from "../netlink/conntrack/conntrack.ts";
import { parseDevice, parseRoute } from "../netlink/devices.ts";
import { parseFamilyId } from "../netlink/generic.ts";
import { parseAddress, parseLink } from "../netlink/host-addresses.ts";
import { encodeMessage, NLMSG } from "../netlink/message.ts";
import { parseChain } from "../netlink/nft/nft-chains.ts";
import { parseSetType, readElements } from "../netlink/nft/nft-elements.ts";
import type { NftSetType } from "../netlink/nft/nft-elements.ts";
import { NftEventReader, parseGeneration } from "../netlink/nft/nft-events.ts";
import { watch } from "../netlink/watch.ts";
import { parseCapabilities } from "../rights/linux-capabilities.ts";
import { readIptablesTable } from "../iptables/rules/listed-rules.ts";
import { readingListing, readNftTable } from "../nft/read-rules.ts";
import { evaluateChain } from "../rules/evaluate.ts";
import type { ExternalTable, HookedPacket } from "../rules/rule.ts";
import { verdictOf } from "../rules/verdict.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];

/** What elements consist of: destinations with verdicts, endpoints, pairs of addresses. */
const SET_TYPES: readonly NftSetType[] = [
  { key: [7, 12, 13], data: undefined },
  { key: [7, 13, 4], data: [7, 13] },
  { key: [8, 8], data: undefined },
];

/** Have a channel read the answer to its first request (its number is 1), as a dump does: one datagram, and then that this was all. */
async function answered(input: Buffer, read: (payload: Buffer, type: number) => void): Promise<void> {
  const answers = [input, encodeMessage(NLMSG.done, 0, 1, Buffer.alloc(4))];
  const receive = (): Buffer => answers.shift() ?? Buffer.alloc(0);
  const socket = { send: () => undefined, receiveNow: receive, receive: async () => receive(), close: () => undefined };
  await new NetlinkChannel(0, () => socket).dump(1, Buffer.alloc(0), (type, payload) => read(payload, type));
}

function inBothFamilies(read: (payload: Buffer, family: IPFamily) => void): FuzzTarget["run"] {
  return (input) => answered(input, (payload) => FAMILIES.forEach((family) => read(payload, family)));
}

/** Notifications, of which this is the first datagram; after it the watch ends. */
async function watchEvents(input: Buffer): Promise<void> {
  const ended = new AbortController();
  const reader = new NftEventReader();
  let isFirst = true;
  const receive = (): Buffer | "nothing" => {
    if (isFirst) {
      isFirst = false;
      return input;
    }
    ended.abort();
    return "nothing";
  };
  const socket = { receive, onArrival: () => true, close: () => undefined };
  const handlers = {
    onMessage: (message: Parameters<NftEventReader["receive"]>[0]) => void reader.receive(message),
    onLost: () => reader.reset(),
    limit: 10,
    overflow: undefined,
  };
  for await (const _ of watch(() => socket, handlers, new TestClock(), ended.signal));
}

const PACKET: HookedPacket = {
  family: "IPv4",
  protocol: "tcp",
  source: "203.0.113.1",
  destination: "10.1.1.1",
  sourcePort: undefined,
  destinationPort: 8080,
  inDevice: "eth0",
  outDevice: "veth1",
  state: "new",
  isTranslated: true,
  isAnsweredThere: true,
  mark: 0x4000,
  isLocal: () => false,
  isInSet: () => undefined,
};

/** Ask each chain of somebody else's that the kernel calls in what becomes of a packet. */
function judge(table: ExternalTable): void {
  for (const chain of table.chains.values()) {
    if (chain.hook === undefined) continue;
    evaluateChain(table, chain, PACKET, () => undefined);
    verdictOf(table, chain, { ...PACKET, mark: undefined });
  }
}

const text =
  (read: (input: string) => unknown): FuzzTarget["run"] =>
  (input) =>
    read(input.toString("utf8"));

/** What reads the kernel's answers, and what tools print. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  {
    name: "netlink-addresses",
    form: "bytes",
    run: inBothFamilies((payload, family) => [parseAddress(payload, family), parseLink(payload)]),
  },
  { name: "netlink-devices", form: "bytes", run: inBothFamilies((payload, family) => [parseDevice(payload), parseRoute(payload, family)]) },
  {
    name: "netlink-conntrack",
    form: "bytes",
    run: inBothFamilies((payload, family) => {
      const entry = parseEntry(payload, family);
      return entry && [entry.destination(), entry.replySource(), entry.deleteRequest()];
    }),
  },
  {
    name: "netlink-sockets",
    form: "bytes",
    run: (input) => answered(input, (payload) => remoteKey(payload) !== undefined && parseSocket(payload, "TCP")),
  },
  {
    name: "netlink-ipvs",
    form: "bytes",
    run: inBothFamilies((payload, family) =>
      [parseService, parseTimeouts, parseVersion, parseFamilyId].map((read) => [read(payload), parseRealServer(payload, family)]),
    ),
  },
  { name: "netlink-nft-generation", form: "bytes", run: (input) => answered(input, (payload, type) => parseGeneration(type, payload)) },
  {
    name: "netlink-nft-table",
    form: "bytes",
    run: (input) =>
      answered(input, (payload) => {
        parseChain(payload);
        const type = parseSetType(payload);
        for (const one of type === undefined ? SET_TYPES : [type]) readElements(payload, one, () => undefined);
      }),
  },
  { name: "netlink-nft-events", form: "bytes", run: watchEvents },
  { name: "iptables-save", form: "text", run: text((saved) => FAMILIES.map((family) => readRules(saved, family, () => true))) },
  { name: "ipset-save", form: "text", run: text(readSets) },
  {
    name: "external-nft-rules",
    form: "json",
    run: text((listed) => judge(readingListing(() => readNftTable("inet", "fw", JSON.parse(listed))))),
  },
  { name: "external-iptables-rules", form: "text", run: text((listed) => judge(readIptablesTable("iptables", "filter", listed))) },
  { name: "proc-status", form: "text", run: text(parseCapabilities) },
  { name: "mountinfo", form: "text", run: text(parseMounts) },
  { name: "verifier-log", form: "text", run: text(complaintOf) },
  {
    name: "tool-versions",
    form: "text",
    run: text((said) => [parseKernelVersion, parseNftVersion, parseIptablesVersion].map((read) => read(said))),
  },
];
