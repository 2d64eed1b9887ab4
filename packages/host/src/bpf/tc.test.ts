import { describe, expect, it } from "vitest";
import { errno } from "../netlink/errno.ts";
import { stubLibbpf } from "../test-support/stub-libbpf.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import type { BpfProgram } from "./program.ts";
import { attachTc } from "./tc.ts";

// Only these members of a program are used.
const PROGRAM = { fd: 9, label: "program on_ingress" } as unknown as BpfProgram;
const PLACE = { ifindex: 4, direction: "egress" } as const;
const NAME = { priority: 7, handle: 3 };

/** A kernel before 6.6. */
function withoutTcx(calls: Partial<Libbpf>): Libbpf {
  return stubLibbpf({ createLink: () => -errno("EINVAL"), createTcHook: () => -errno("EEXIST"), ...calls });
}

describe("attaching to a device", () => {
  it("takes clsact where there is no tcx", () => {
    const asked: (readonly number[])[] = [];
    const note = (hook: Uint8Array, options: Uint8Array): number => {
      const [one, two] = [Buffer.from(hook), Buffer.from(options)];
      asked.push([
        one.readInt32LE(8),
        one.readUInt32LE(12),
        two.readInt32LE(8),
        two.readUInt32LE(12),
        two.readUInt32LE(20),
        two.readUInt32LE(24),
      ]);
      return 0;
    };
    const attached = attachTc(withoutTcx({ attachTc: note, detachTc: note }), PROGRAM, PLACE, NAME);
    if (attached.kind === "clsact") attached.filter.detach();
    // ifindex, BPF_TC_EGRESS, the program, BPF_TC_F_REPLACE, handle, priority
    expect(asked).toEqual([
      [4, 2, 9, 1, 3, 7],
      [4, 2, 0, 0, 3, 7],
    ]);
  });

  it.each([
    ["EPERM", "permission_denied"],
    ["ENODEV", "not_found"],
  ] as const)("gives up at %s", (name, code) => {
    const lib = stubLibbpf({ createLink: () => -errno(name) });
    expect(() => attachTc(lib, PROGRAM, PLACE, NAME)).toThrow(`[${code}] a program can't be attached to a device`);
  });
});
