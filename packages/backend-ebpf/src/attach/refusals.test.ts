import { ProxyError } from "@turnout/core/backend";
import { beforeEach, describe, expect, it } from "vitest";
import { Refusals } from "./refusals.ts";

/** As @turnout/host/bpf tells of the verifier's refusal. */
function refusal(object: string, log: string, hint?: string): ProxyError {
  const cause = Object.assign(new Error("the verifier's log"), { name: "VerifierRefusal", log });
  return new ProxyError("host_unsupported", "this kernel's verifier refuses a BPF program (EACCES)", {
    object,
    cause,
    ...(hint === undefined ? {} : { hint }),
  });
}

const SOCKETS = refusal("turnout_conn4 of sockets.bpf.o: R0 invalid", "0: way there\nR0 invalid\nprocessed 1 insns\n");
const PACKETS = refusal("turnout_in of packets.bpf.o: R1 invalid", "1: way there\nR1 invalid\n", "another hint");
const LINE = "[host_unsupported] this kernel's verifier refuses a BPF program (EACCES): ";

describe("what the verifier refuses", () => {
  let written: Map<string, string>;
  const world = { writeText: (path: string, text: string): void => void written.set(path, text) };
  beforeEach(() => (written = new Map()));

  it("is told with the option that keeps the whole log", () => {
    expect(new Refusals(undefined, world).noted("sockets", SOCKETS)).toMatchObject({
      message: `${LINE}turnout_conn4 of sockets.bpf.o: R0 invalid: option verifier-log=/path/of/a/file keeps the verifier's whole log`,
      cause: SOCKETS.cause,
    });
    expect(written.size).toBe(0);
  });

  it("is written where the option says, of each object file the newest", () => {
    const refusals = new Refusals("/var/log/verifier", world);
    refusals.noted("sockets", refusal("old", "old"));
    refusals.noted("sockets", SOCKETS);
    expect(refusals.noted("packets", PACKETS)).toMatchObject({
      hint: "another hint; the verifier's whole log is in /var/log/verifier",
    });
    expect([...written]).toEqual([
      [
        "/var/log/verifier",
        `# ${SOCKETS.message}\n0: way there\nR0 invalid\nprocessed 1 insns\n\n# ${PACKETS.message}\n1: way there\nR1 invalid\n`,
      ],
    ]);
  });

  it("is told all the same where the file can't be written", () => {
    const failing = {
      writeText: (): never => {
        throw new Error("ENOENT: no such file or directory");
      },
    };
    expect(new Refusals("/none/log", failing).noted("sockets", SOCKETS)).toMatchObject({
      hint: "the verifier's whole log could not be written: ENOENT: no such file or directory",
    });
  });

  it("is nothing of what failed otherwise", () => {
    const other = new ProxyError("not_found", "there is no such BPF object file");
    const refusals = new Refusals("/var/log/verifier", world);
    expect([refusals.noted("sockets", other), refusals.noted("sockets", undefined), written.size]).toEqual([other, undefined, 0]);
  });
});
