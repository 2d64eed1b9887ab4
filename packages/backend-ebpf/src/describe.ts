import { isEqual } from "@turnout/core";
import type { ObjectWords } from "@turnout/core/backend";
import { elementsOf, isInMap, mapOf } from "./bytes/elements.ts";
import { HOOKS, placeOf } from "./hooks.ts";
import { encodePlace } from "./bytes/layout.ts";
import type {
  Choice,
  DeviceObject,
  EbpfObject,
  LinkObject,
  ListObject,
  MapObject,
  ServiceObject,
  ServiceValue,
  TableObject,
} from "./objects.ts";
import { ROOT_CGROUP } from "./options.ts";
import type { EbpfFacts, EbpfOptions } from "./options.ts";

/** Where what is described is found. */
export interface DescribedHost {
  /** Name a device. */
  readonly nameOf: (ifindex: number) => string;
  /** The folder in which maps are pinned; undefined: there is none. */
  readonly folder: string | undefined;
}

/** Call an object by words of eBPF, and say how the one that the host holds differs. Pure. */
export function describeObject(object: EbpfObject, host: DescribedHost, held?: EbpfObject): ObjectWords {
  if (isInMap(object)) return describeElements(object, host, held);
  switch (object.kind) {
    case "link": {
      const what = `the program ${object.key} at ${HOOKS[object.key] ?? "its hook"} of its cgroup`;
      return { what, show: "bpftool cgroup tree", ...(held?.kind === "link" ? differingLink(what, held) : {}) };
    }
    case "device": {
      const { ifindex = NaN, direction = "" } = placeOf(object.key) ?? {};
      const where = `${direction} of ${host.nameOf(ifindex)}`;
      return {
        what: `the program at ${where}`,
        show: "bpftool net",
        ...(held?.kind === "device" ? differingDevice(where, held) : {}),
      };
    }
    case "table":
      return {
        what: `the nftables table ${object.key} that packets need`,
        show: `nft list table ${object.key}`,
        ...(held?.kind === "table" ? { differs: differingTable(object, held.value) } : {}),
      };
    default:
      return { what: `the pin ${object.kind} ${object.key}`, show: "ls /sys/fs/bpf/turnout" };
  }
}

/** In which cgroup it is, and which build it is of, the proxy decides. */
function differingLink(what: string, { value: { cgroup, programs } }: LinkObject): Partial<ObjectWords> {
  if (cgroup === "0") return { differs: `${what} is detached: sockets are not served there` };
  return programs === "" ? {} : { isOfOtherSettings: true };
}

/** Which of our programs it is, by how pods are told, the proxy decides. */
function differingDevice(where: string, { value: { program, programs } }: DeviceObject): Partial<ObjectWords> {
  if (program === "")
    return { differs: `the program at ${where} is detached, or another one is in its place: packets are not served there` };
  return programs === "" ? {} : { isOfOtherSettings: true };
}

function describeElements(object: MapObject, { folder }: DescribedHost, held: EbpfObject | undefined): ObjectWords {
  const map = mapOf(object);
  const bytes = object.kind === "list" ? placeThatDiffers(object, held) : elementsOf(object)[0]?.key;
  const key = bytes?.toString("hex").replaceAll(/..(?=.)/g, "$& ");
  const show = folder === undefined || key === undefined ? {} : { show: `bpftool map lookup pinned ${folder}/${map} key hex ${key}` };
  if (object.kind === "list") {
    const what = `list ${object.key} of BPF map ${map}`;
    const says =
      held?.kind === "list" ? { differs: `${what} sends packets to ${listed(held.value)}, should: ${listed(object.value)}` } : {};
    return { what: `${what} (endpoints ${listed(object.value)})`, ...show, ...says };
  }
  if (object.kind === "ranges") {
    const what = `source ranges ${object.key} of BPF map ${map}`;
    const says = held?.kind === "ranges" ? { differs: `${what} let in ${listed(held.value)}, should: ${listed(object.value)}` } : {};
    return { what: `${what} (${listed(object.value)})`, ...show, ...says };
  }
  const named = object.kind === "service" ? object.key : `${object.kind} ${object.key}`;
  const says = differingElement(object, held);
  return { what: `element ${named} of BPF map ${map}`, ...show, ...says };
}

/** Of an element of one kind; whether rows are counted, and which addresses the node has, settings say. */
function differingElement(object: MapObject, held: EbpfObject | undefined): Pick<ObjectWords, "differs" | "isOfOtherSettings"> {
  if (object.kind === "service") return held?.kind === "service" ? differingService(object, held.value) : {};
  if (object.kind === "counter") return { isOfOtherSettings: true };
  const isOfNode = object.kind === "node-address" || object.kind === "primary";
  return isOfNode && held !== undefined ? { isOfOtherSettings: true } : {};
}

/** The first place at which the lists differ, maybe behind the end of one. */
function placeThatDiffers({ key, value: wanted }: ListObject, held: EbpfObject | undefined): Buffer {
  let index = 0;
  if (held?.kind === "list") while (index < wanted.length && wanted[index] === held.value[index]) index += 1;
  return encodePlace(key, index);
}

/** How many parts are named. */
const SHOWN = 4;

function listed(parts: readonly string[]): string {
  const there = parts.filter((part) => part !== "");
  if (there.length === 0) return "none";
  return `${there.slice(0, SHOWN).join(", ")}${there.length > SHOWN ? ` and ${there.length - SHOWN} more` : ""}`;
}

const ASKERS = { pod: "pods here", host: "this node", outside: "elsewhere" } as const;

/** What becomes of whom; other fields are compared as they are. */
function differingService({ key, value: wanted }: ServiceObject, held: ServiceValue): Pick<ObjectWords, "differs" | "isOfOtherSettings"> {
  if (isEqual(withoutSettings(wanted), withoutSettings(held))) return { isOfOtherSettings: true };
  const asker = (["pod", "host", "outside"] as const).find((one) => choiceText(wanted[one]) !== choiceText(held[one]));
  if (asker === undefined) return {};
  const [is, should] = [choiceText(held[asker]), choiceText(wanted[asker])];
  return { differs: `with packets for ${key} from ${ASKERS[asker]} the kernel does "${is}", should: "${should}" (BPF map services)` };
}

/** What no settings decide: who is masqueraded, and which sockets are left to packets, they do. */
function withoutSettings(value: ServiceValue): ServiceValue {
  const unmasked = (choice: Choice): Choice => ({ ...choice, masquerade: false });
  const [pod, host, outside] = [value.pod, value.host, value.outside].map(unmasked) as [Choice, Choice, Choice];
  return { ...value, podsPass: false, hostPass: false, pod, host, outside };
}

function choiceText({ verdict, list, count, masquerade }: Choice): string {
  return verdict === "serve" ? `serve ${count} of list ${list}${masquerade ? ", masquerade" : ""}` : verdict;
}

function differingTable({ key, value: wanted }: TableObject, held: readonly string[]): string {
  const lacking = wanted.find((line) => !held.includes(line));
  const extra = held.find((line) => !wanted.includes(line));
  if (lacking !== undefined) return `the nftables table ${key} lacks "${lacking}"`;
  return extra === undefined
    ? `the nftables table ${key} has its chains in another order`
    : `the nftables table ${key} has "${extra}", which should not be there`;
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
