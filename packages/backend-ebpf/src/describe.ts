import type { ObjectWords } from "@turnout/core/backend";
import { isInMap, mapOf } from "./elements.ts";
import type { EbpfObject } from "./objects.ts";

/** Call an object by words of eBPF; `nameOf` names devices. */
export function describeObject(object: EbpfObject, nameOf: (ifindex: number) => string): ObjectWords {
  if (isInMap(object)) {
    const map = mapOf(object);
    return { what: `the element of ${object.kind} ${object.key} in BPF map ${map}`, show: `bpftool map show name ${map}` };
  }
  switch (object.kind) {
    case "link":
      return { what: `the program ${object.key} at its cgroup`, show: "bpftool cgroup tree" };
    case "device": {
      const [index = "", side = ""] = object.key.split("-");
      return { what: `the program at ${side} of ${nameOf(Number(index))}`, show: "bpftool net" };
    }
    case "table":
      return { what: `the nftables table ${object.key} that packets need`, show: "nft list ruleset" };
    default:
      return { what: `the pin ${object.kind} ${object.key}`, show: "ls /sys/fs/bpf/turnout" };
  }
}
