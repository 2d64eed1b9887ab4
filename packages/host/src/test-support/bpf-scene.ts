// What the scenarios of the room bpf share: the compiled objects, structs of example.bpf.c, packets.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ProxyError } from "@turnout/core";
import type { Elements } from "../bpf/maps/map-batches.ts";
import type { BpfMap } from "../bpf/maps/map.ts";
import { sumCounter } from "../bpf/maps/per-cpu.ts";
import { tool } from "./tool.ts";

/** Path of a compiled object of this folder. */
export function objectFile(name: string): string {
  return fileURLToPath(new URL(`../../dist/test-support/${name}.bpf.o`, import.meta.url));
}

/** Where this mount namespace has its own bpffs; see {@link mountBpffs}. */
export const BPFFS = "/sys/fs/bpf";

/** Mount a bpffs over what is there; it goes with the mount namespace of this process, which must be its own. */
export function mountBpffs(): void {
  tool("mount", "-t", "bpf", "bpf", BPFFS);
}

/** Make the cgroup that this test may use, and go into it. Its name is an argument, so that the test can remove it in any case. */
export function enterCgroup(cgroup: string): string {
  if (!existsSync(cgroup)) mkdirSync(cgroup);
  writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));
  return cgroup;
}

/** `struct target`: an address and a port in network order, and flags. */
export function target(address: string, port: number, flags = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.set(address.split(".").map(Number));
  bytes.writeUInt16BE(port, 4);
  bytes.writeUInt16LE(flags, 6);
  return bytes;
}

/** `struct prefix`. */
export function prefix(address: string, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(length, 0);
  bytes.set(address.split(".").map(Number), 4);
  return bytes;
}

/** Four bytes in host order. */
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Eight bytes in host order. */
export function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** A UDP packet over IPv4, from the Ethernet header on; checksums are left at 0. */
export function udpPacket(from: string, to: string, sourcePort: number, destinationPort: number): Buffer {
  const packet = Buffer.alloc(14 + 20 + 8 + 4);
  packet.writeUInt16BE(0x0800, 12);
  packet[14] = 0x45;
  packet.writeUInt16BE(packet.length - 14, 16);
  packet[22] = 64;
  packet[23] = 17;
  packet.set(from.split(".").map(Number), 26);
  packet.set(to.split(".").map(Number), 30);
  packet.writeUInt16BE(sourcePort, 34);
  packet.writeUInt16BE(destinationPort, 36);
  packet.writeUInt16BE(12, 38);
  packet.write("ping", 42);
  return packet;
}

/** How many file descriptors this process has open. */
export function openFiles(): number {
  return readdirSync("/proc/self/fd").length;
}

/** What `run` throws, as one line. */
export async function refusal(run: () => unknown): Promise<string> {
  try {
    await run();
    return "nothing";
  } catch (error) {
    return ProxyError.is(error) ? error.message : String(error);
  }
}

/** Play the scenario that the command line names, and print what it gives. */
export async function runScenario(scenarios: Readonly<Record<string, () => Promise<unknown>>>): Promise<void> {
  const name = process.argv[2] ?? "";
  const scenario = scenarios[name];
  if (scenario === undefined) throw new Error(`no scenario "${name}"`);
  process.stdout.write(JSON.stringify(await scenario()));
}

/** The sum of a counter of the map `hits`. */
export function hits(map: BpfMap, at: number): number {
  return Number(sumCounter(map.lookup(u32(at)) ?? Buffer.alloc(0), map.info.valueSize));
}

/** Read a map, in the batches it comes in. */
export async function readAll(map: BpfMap): Promise<readonly Elements[]> {
  const batches: Elements[] = [];
  for await (const batch of map.read()) batches.push(batch);
  return batches;
}

/** Keys of a map in hex, sorted. */
export async function keysOf(map: BpfMap): Promise<readonly string[]> {
  const size = map.info.keySize;
  const keys = (await readAll(map)).flatMap(({ count, keys: all }) =>
    Array.from({ length: count }, (_, at) => all.toString("hex", at * size, (at + 1) * size)),
  );
  return keys.toSorted();
}

/** `count` elements with keys of 8 bytes, numbered. */
export function numbered(count: number, valueBytes = 8): Elements {
  const keys = Buffer.alloc(count * 8);
  const values = Buffer.alloc(count * valueBytes);
  for (let at = 0; at < count; at += 1) {
    keys.writeUInt32LE(at, at * 8);
    values.writeUInt32LE(at + 1, at * valueBytes);
  }
  return { count, keys, values };
}
