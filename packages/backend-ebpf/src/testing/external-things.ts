import { join } from "node:path";
import { UPLINK } from "@turnout/conformance";
import { Cpu, END } from "./cpu.ts";
import type { ProgramKind } from "./object-file.ts";
import type { Code } from "./program-code.ts";
import type { MemoryKernel } from "./memory-kernel.ts";
import { DEVICES } from "./devices.ts";

/** A program that lets everything pass. */
function passing(kind: ProgramKind): { readonly code: Code; readonly kind: ProgramKind } {
  const cpu = new Cpu();
  const result = kind.is === "tc" ? -1 : 1;
  const operations = [(): number => (cpu.answer(result), END)];
  return { kind, code: { cpu, operations, digest: "f".repeat(64), file: { maps: [], programs: [], instructions: [] } } };
}

const AT_SOCKETS = passing({ is: "cgroup", hook: "connect4" });
const AT_DEVICE = passing({ is: "tc" });

/** Have what somebody else has: a map, and programs at the same cgroup and the same device, with pins whose names are much like ours. */
export function addExternalThings(kernel: MemoryKernel): void {
  const folder = join(kernel.files.root, "turnout-of-somebody");
  const map = kernel.makeMap({ name: "services", type: "hash", keySize: 4, valueSize: 4, maxEntries: 8, flags: 0 });
  map.map.update("\x01\x02\x03\x04", Buffer.from([5, 6, 7, 8]), "any");
  kernel.files.pin(map, join(folder, "services"), false);
  const add = ({ code, kind }: typeof AT_DEVICE, name: string) => kernel.makeProgram({ name, kind, entry: 0 }, code, [map]);
  const [atSockets, atDevice] = [add(AT_SOCKETS, "somebody_conn4"), add(AT_DEVICE, "somebody_in")];
  const atCgroup = kernel.attach(atSockets, { kind: "cgroup", cgroupId: 1n, hook: "connect4" });
  kernel.files.pin(atCgroup, join(folder, "conn4"), false);
  const ifindex = DEVICES.get(UPLINK) ?? 0;
  kernel.files.pin(kernel.attach(atDevice, { kind: "tcx", ifindex, direction: "ingress" }), join(folder, "in"), false);
  kernel.setFilter({ ifindex, direction: "egress", priority: 1, handle: 1, program: atDevice });
}
