import { expect, it } from "vitest";
import { warningLines } from "./print-capture.ts";

it("keeps what libbpf says, without its name, the verifier's log and what everybody is told", () => {
  const text = [
    "libbpf: extern (func ksym) 'bpf_ct_set_nat_info': not found in kernel or module BTFs",
    "libbpf: prog 'on_flow': BPF program load failed: Permission denied",
    "libbpf: prog 'on_flow': -- BEGIN PROG LOAD LOG --",
    "0: (95) exit",
    "R0 !read_ok",
    "-- END PROG LOAD LOG --",
    "libbpf: prog 'on_flow': failed to load: -13",
    "libbpf: failed to load object 'x.bpf.o'",
    "",
  ];
  expect(warningLines(text.join("\n"))).toEqual([
    "extern (func ksym) 'bpf_ct_set_nat_info': not found in kernel or module BTFs",
    "prog 'on_flow': BPF program load failed: Permission denied",
  ]);
  expect(warningLines("")).toEqual([]);
});
