import { execFileSync } from "node:child_process";
import type { IPFamily } from "@turnout/core";
import { pickOne } from "@turnout/core/testing";
import { evaluateChain } from "../rules/evaluate.ts";
import type { RunResult } from "../rules/evaluate.ts";
import type { ExternalTable, HookedPacket } from "../rules/rule.ts";

/** TURNOUT_SEED=n tries other rules than CI does. */
export const SEED: number = Number(process.env["TURNOUT_SEED"] ?? 1);
export const PORTS: readonly number[] = [80, 81, 95];

/** What one packet is, by the case that it is for: its source port tells. */
export interface Sent {
  readonly protocol: "udp" | "tcp";
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

/** An address of the network between the two namespaces: 1 and 3 are the receiver's, 2 and 4 the sender's. */
export const ip = (family: IPFamily, number: number): string => (family === "IPv4" ? `10.9.0.${number}` : `fd09::${number}`);

/** Packets to the receiver, so many. */
export function sentPackets(count: number, family: IPFamily, random: () => number): readonly Sent[] {
  return Array.from({ length: count }, (_, number) => ({
    protocol: pickOne(["udp", "tcp"], random),
    source: ip(family, pickOne([2, 4], random)),
    sourcePort: 20_000 + number,
    destination: ip(family, pickOne([1, 3], random)),
    destinationPort: pickOne(PORTS, random),
  }));
}

/** What the evaluator says of a packet that comes in at a chain, as far as rules of before and conntrack have not changed it. */
export function evaluated(table: ExternalTable, base: string, packet: Sent, family: IPFamily, more: Partial<HookedPacket> = {}): RunResult {
  const chain = table.chains.get(base);
  if (chain === undefined) throw new Error("the chain is there");
  const hooked: HookedPacket = {
    ...packet,
    family,
    inDevice: "tveth0",
    outDevice: "",
    state: "new",
    isTranslated: false,
    isAnsweredThere: true,
    mark: 0,
    original: packet,
    isLocal: (address) => [ip(family, 1), ip(family, 3)].includes(address),
    isInSet: () => undefined,
    ...more,
  };
  return evaluateChain(table, chain, hooked, () => undefined);
}

const SENDER = `
const { createSocket } = require("node:dgram"), { connect } = require("node:net");
const send = ({ protocol, source, sourcePort, destination, destinationPort }) => new Promise((done) => {
  if (protocol === "udp") {
    const socket = createSocket(source.includes(":") ? "udp6" : "udp4").on("error", done);
    return socket.bind(sourcePort, source, () => socket.send("x", destinationPort, destination, () => socket.close(done)));
  }
  const socket = connect({ host: destination, port: destinationPort, localAddress: source, localPort: sourcePort });
  socket.on("error", () => done()).on("connect", () => socket.destroy()).on("close", done);
});
(async () => { for (const one of JSON.parse(process.argv[1])) await send(one); })();
`;

/** Commands of a shell: `load` reads rules from its input, `list` prints what they counted. */
export interface RuleTool {
  readonly load: string;
  readonly list: string;
}

/** Load rules in a namespace, send packets to it from another one, and list what rules counted. */
export function sendThrough({ load, list }: RuleTool, family: IPFamily, input: string, sent: readonly Sent[]): string {
  const add = (device: string, ...numbers: readonly number[]): string =>
    numbers.map((number) => `ip addr add ${ip(family, number)}/${family === "IPv4" ? "24" : "64 nodad"} dev ${device}`).join("; ");
  const script = `
    unshare -n sleep 100 & peer=$!
    trap "kill $peer" EXIT
    while [ "$(readlink /proc/$peer/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
    ip link add tveth0 type veth peer name tveth1 netns $peer
    ${add("tveth0", 1, 3)}; ip link set tveth0 up; ip link set lo up
    nsenter -t $peer -n sh -c '${add("tveth1", 2, 4)}; ip link set tveth1 up'
    ${load} && nsenter -t $peer -n "$NODE" -e "$SENDER" "$SENT" && ${list}`;
  const env = { ...process.env, NODE: process.execPath, SENDER, SENT: JSON.stringify(sent) };
  return execFileSync("unshare", ["-n", "sh", "-e", "-c", script], { input, env, encoding: "utf8", timeout: 100_000 });
}
