import { describe, expect, it } from "vitest";
import { complaintOf, complaintText } from "./verifier-log.ts";

/** Linux 6.18, with lines of C. */
const NULL_POINTER = `0: R1=ctx() R10=fp0
; __u32 at = 0; @ refused.bpf.c:25
0: (b7) r1 = 0                        ; R1_w=0
1: (63) *(u32 *)(r10 -4) = r1
2: (bf) r2 = r10                      ; R2_w=fp0 R10=fp0
; skb->mark = *mark; @ refused.bpf.c:27
8: (61) r1 = *(u32 *)(r0 +0)
R0 invalid mem access 'map_value_or_null'
verification time 84 usec
stack depth 4
processed 8 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
`;
/** Linux 6.1, without lines of C, and states after the instruction. */
const UNRELEASED = `func#0 @0
5: (85) call bpf_skb_ct_lookup#78945
R0_w=ptr_or_null_nf_conn(id=2,ref_obj_id=2,off=0,imm=0) refs=2
9: (95) exit
R0=scalar() R10=fp0 refs=2
Unreleased reference id=2 alloc_insn=5
BPF_EXIT instruction would lead to reference leak
processed 10 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 1
`;

describe("what the verifier complains of", () => {
  it("is the last it says, with the line and the instruction it is about", () => {
    expect(complaintOf(NULL_POINTER)).toEqual({
      reason: "R0 invalid mem access 'map_value_or_null'",
      source: "skb->mark = *mark;",
      instruction: "8: (61) r1 = *(u32 *)(r0 +0)",
    });
    expect(complaintOf(UNRELEASED)).toEqual({
      reason: "Unreleased reference id=2 alloc_insn=5; BPF_EXIT instruction would lead to reference leak",
      source: undefined,
      instruction: "9: (95) exit",
    });
  });

  it.each([
    ["nothing", "", undefined],
    ["statistics alone", "processed 8 insns (limit 1000000)\n", undefined],
    [
      "a program that is too large",
      "7: (05) goto pc-3\nBPF program is too large. Processed 1000001 insn\nprocessed 1000001 insns (limit 1000000)\n",
      "BPF program is too large. Processed 1000001 insn",
    ],
    ["what has no instruction", "unreachable insn 7\n", "unreachable insn 7"],
    ["an end that was cut off", "7: (05) goto pc-3\n", "7: (05) goto pc-3"],
    ["many lines: the last four", "1: (95) exit\na\nb\nc\nd\ne\n", "b; c; d; e"],
  ])("of %s", (_, log, reason) => {
    expect(complaintOf(log)?.reason).toBe(reason);
  });

  it("fits into one line", () => {
    expect(complaintText({ reason: "R0 !read_ok", source: "\treturn x;", instruction: "1: (95) exit" })).toBe(
      'R0 !read_ok (at "return x;", 1: (95) exit)',
    );
    expect(complaintText({ reason: "R0 !read_ok", source: undefined, instruction: undefined })).toBe("R0 !read_ok");
  });
});
