import type { ObjectWords } from "@turnout/core/backend";
import { isInMap, mapOf } from "./elements.ts";
import type { EbpfObject } from "./objects.ts";
import { ROOT_CGROUP } from "./options.ts";
import type { EbpfFacts, EbpfOptions } from "./options.ts";

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

/** Say why packets that come in by a device are not served. Pure. */
export function unservedDevice(device: string, { devices }: Pick<EbpfOptions, "devices">): string {
  const why =
    devices.length > 0
      ? `option devices (${devices.join(", ")}) does not name it`
      : "no default route goes by it, and neither an address on which node ports answer nor this node's pods are there; option devices names others";
  return `${device} carries no program of Turnout: ${why}`;
}

/** Say whose sockets are served, where it isn't all of this host. Pure. */
export function unservedSockets({ cgroup }: Pick<EbpfOptions, "cgroup">, host: Pick<EbpfFacts, "cgroup">): string | undefined {
  if (host.cgroup === ROOT_CGROUP) return undefined;
  return cgroup === undefined
    ? "only programs and pods below the cgroup of the proxy's container are served (the host's cgroup mount is not seen there)"
    : `only programs and pods below ${cgroup} are served (option cgroup)`;
}
