import { createBpf } from "@turnout/host/bpf";

/**
 * A foreign hand at eBPF, bytes in hexadecimal: `ebpf-hand.ts detach PIN` ends a link that is pinned there. Of a map's elements whose keys hold some bytes
 * (none: all), `delete PIN KEY` deletes each, `spoil PIN KEY` makes its value 0, `replace PIN KEY BYTES OTHERS` changes bytes of its value, and
 * `copy PIN BYTES OTHERS` makes one more of the same value, with others for these bytes of the key.
 */
const [, , what = "", pin = "", bytes = "", ...more] = process.argv;
const bpf = createBpf();
if (what === "detach") {
  const link = bpf.openLink(pin);
  link.detach();
  link.close();
} else {
  const map = bpf.openMap({ pin });
  for (const key of await keysWith(bytes)) {
    const value = map.lookup(key) ?? Buffer.alloc(0);
    switch (what) {
      case "delete":
        map.delete(key);
        break;
      case "spoil":
        map.update(key, Buffer.alloc(map.valueBytes));
        break;
      case "replace":
        map.update(key, changed(value, more[0], more[1]));
        break;
      case "copy":
        map.update(changed(key, bytes, more[0]), value);
        break;
      default:
        throw new Error(`what is ${what}?`);
    }
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
}

function changed(buffer: Buffer, from: string = "", to: string = ""): Buffer {
  return Buffer.from(buffer.toString("hex").replaceAll(from, to), "hex");
}
