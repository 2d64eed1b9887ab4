import type { IPFamily } from "@turnout/core/backend";
import type { CgroupHook, TcPlace } from "@turnout/host/bpf";

/** The object files of programs, by what the programs are for. */
export const PROGRAM_FILES = ["sockets", "packets"] as const;

/** One of them. */
export type ProgramFile = (typeof PROGRAM_FILES)[number];

/** The programs of sockets.bpf.o by their names in C, each with its hook of the cgroup. */
export const HOOKS: Readonly<Record<string, CgroupHook>> = {
  turnout_conn4: "connect4",
  turnout_conn6: "connect6",
  turnout_send4: "sendmsg4",
  turnout_send6: "sendmsg6",
  turnout_recv4: "recvmsg4",
  turnout_recv6: "recvmsg6",
  turnout_peer4: "getpeername4",
  turnout_peer6: "getpeername6",
  turnout_close: "sock_release",
};

/** The programs of packets.bpf.o by their names in C; `turnout_in_pods` is for devices by which pods are told. */
export const PACKET_PROGRAMS = ["turnout_in", "turnout_in_pods", "turnout_out"] as const;

/** One of them. */
export type PacketProgram = (typeof PACKET_PROGRAMS)[number];

/** The names of a file's programs. */
export const PROGRAMS_OF: Readonly<Record<ProgramFile, readonly string[]>> = { sockets: Object.keys(HOOKS), packets: PACKET_PROGRAMS };

/** The families whose services a hook's sockets ask for: a socket of IPv6 asks for IPv4 too, by ::ffff:a.b.c.d. */
export function familiesOf(hook: CgroupHook): readonly IPFamily[] {
  return hook.endsWith("4") ? ["IPv4"] : ["IPv4", "IPv6"];
}

/** The key of what is attached to a side of a device. */
export function deviceKey({ ifindex, direction }: TcPlace): string {
  return `${ifindex}-${direction}`;
}

/** Undoes {@link deviceKey}; undefined for another text. */
export function placeOf(key: string): TcPlace | undefined {
  const [, ifindex, direction] = /^(\d+)-(ingress|egress)$/.exec(key) ?? [];
  return ifindex === undefined ? undefined : { ifindex: Number(ifindex), direction: direction as TcPlace["direction"] };
}
