import { createBpf } from "@turnout/host/bpf";

/** A foreign hand at eBPF: `ebpf-hand.ts detach PIN` ends a link that is pinned there. */
const [, , what = "", pin = ""] = process.argv;
if (what !== "detach") throw new Error(`what is ${what}?`);
const link = createBpf().openLink(pin);
link.detach();
link.close();
