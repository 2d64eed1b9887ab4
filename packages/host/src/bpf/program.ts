import { infoOf, KernelHandle, takenAs } from "./handle.ts";
import type { BpfHandle } from "./handle.ts";
import { readProgramInfo } from "./info.ts";
import type { ProgramInfo } from "./info.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import { testRun } from "./test-run.ts";
import type { TestInput, TestOutcome } from "./test-run.ts";

/** A program in the kernel. */
export interface BpfProgram extends BpfHandle {
  readonly info: ProgramInfo;
  /**
   * Run a tc program on a packet that is on no device (BPF_PROG_TEST_RUN): what it does to maps and conntrack it does really, in this network namespace.
   * @throws {ProxyError} `invalid_object` for a packet without Ethernet header, `host_unsupported` for a program of another type.
   */
  testRun(input: TestInput): TestOutcome;
}

/** {@link BpfProgram} over libbpf. */
export class KernelProgram extends KernelHandle implements BpfProgram {
  readonly info: ProgramInfo;

  constructor(lib: Libbpf, fd: number) {
    const info = infoOf(lib, fd, readProgramInfo);
    super(lib, fd, `program ${info.name}`);
    this.info = info;
  }

  testRun(input: TestInput): TestOutcome {
    return testRun(this.lib, this.fd, this.label, input);
  }
}

/** Take over a file descriptor that should be a program's. @throws {ProxyError} `invalid_object` when it isn't. */
export function programFrom(lib: Libbpf, fd: number, object: string): KernelProgram {
  return takenAs("program", fd, object, (one) => new KernelProgram(lib, one));
}
