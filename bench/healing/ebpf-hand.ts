import { createBpf } from "@turnout/host/bpf";

/**
 * A foreign hand at eBPF: `ebpf-hand.ts detach PIN` ends a link that is pinned there; `delete PIN KEY` deletes the elements of a map whose keys hold
 * these bytes (hexadecimal; none: all), and `spoil PIN KEY` makes the bytes of their values 0.
 */
const [, , what = "", pin = "", bytes = ""] = process.argv;
const bpf = createBpf();
if (what === "detach") {
  const link = bpf.openLink(pin);
  link.detach();
  link.close();
} else if (what === "delete" || what === "spoil") {
  const map = bpf.openMap({ pin });
  for (const key of await keysWith(bytes)) {
    if (what === "delete") map.delete(key);
    else map.update(key, Buffer.alloc(map.valueBytes));
  }
  map.close();

  async function keysWith(hex: string): Promise<readonly Buffer[]> {
    const found: Buffer[] = [];
    for await (const { count, keys } of map.read()) {
      const length = keys.length / count;
      for (let at = 0; at < count; at += 1) {
        const key = keys.subarray(at * length, (at + 1) * length);
        if (key.toString("hex").includes(hex)) found.push(key);
      }
    }
    return found;
  }
} else throw new Error(`what is ${what}?`);
