import type { BpfMap } from "@turnout/host/bpf";
import { LAST_NS } from "../testing/kernel-machine.ts";

/** Make all that affinity remembers older; tells whether it was renewed since, by the age it had. */
export async function age(map: BpfMap, seconds: number): Promise<boolean> {
  let isYoung = true;
  for await (const { count, keys, values } of map.read()) {
    for (let index = 0; index < count; index += 1) {
      const key = keys.subarray(index * map.info.keySize, (index + 1) * map.info.keySize);
      const value = Buffer.from(values.subarray(index * map.valueBytes, (index + 1) * map.valueBytes));
      const last = value.readBigUInt64LE(LAST_NS);
      // Wraps as the program does: a machine that has just started has not been up for as long as entries are aged.
      isYoung &&= BigInt.asUintN(64, process.hrtime.bigint() - last) < 60_000_000_000n;
      value.writeBigUInt64LE(BigInt.asUintN(64, process.hrtime.bigint() - BigInt(seconds) * 1_000_000_000n), LAST_NS);
      map.update(key, value);
    }
  }
  return isYoung;
}
