import { ProgramFault, Value } from "./cpu.ts";
import type { KernelFunction } from "./cpu.ts";

const SKB_BYTES = 232;
const UNWRITABLE: ReadonlySet<number> = new Set();

/** Where the kernel in memory has what programs read of a packet beside its context. Enumerators are told to be there; their numbers mean nothing. */
export const SKB_FIELDS: Readonly<Record<string, number>> = { "sk_buff.active_extensions": 126, "skb_ext_id.SKB_EXT_BRIDGE_NF": 0 };

/** No packet of this kernel has come by a bridge, so none has extensions. */
const PACKET = new Value(Buffer.alloc(SKB_BYTES), UNWRITABLE);

/** Kfuncs of packets, as in Linux 6.18. */
export const SKB_FUNCTIONS: Readonly<Record<string, KernelFunction>> = {
  bpf_cast_to_kern_ctx: (cpu) => {
    if (cpu.valueAt(1) !== cpu.setting.context) throw new ProgramFault("this is not the context");
    cpu.giveBack(PACKET);
  },
};
