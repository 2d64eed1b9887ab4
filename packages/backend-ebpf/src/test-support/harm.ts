// What another hand may do to maps, links and pins.
import { execFileSync } from "node:child_process";
import { rmdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { encodeAddress, encodeCookie, encodeDestination, encodeEndpoint, encodePlace, STRUCTS } from "../bytes/layout.ts";
import { listId } from "../names.ts";
import { encodePodRange, encodeSourceRange } from "../bytes/ranges.ts";
import { bpf, map, ROOT } from "./module-scene.ts";

const [FOUR, TWO] = [
  listId(["10.1.1.10:8080", "10.1.1.11:8080", "10.1.1.15:8080", "10.1.1.16:8080"]),
  listId(["10.1.1.10:8080", "10.1.1.11:8080"]),
];
const [PLAIN, OTHER] = [encodeDestination("10.96.0.1:80/TCP"), encodeDestination("10.96.0.2:80/TCP")];

/** The folder of a pin whose path has this in it. */
function folderWith(text: string): string {
  const pin = bpf.pins(ROOT).find(({ path }) => path.includes(text));
  if (pin === undefined) throw new Error(`no pin with ${text}`);
  return dirname(pin.path);
}

function nft(command: string): void {
  execFileSync("nft", [command]);
}

/** By what is done; 10.96.0.1:80/TCP has four endpoints. */
export const HARM: Readonly<Record<string, () => void>> = {
  serviceGone: () => void map("services").delete(PLAIN),
  serviceChanged: () => map("services").update(PLAIN, map("services").lookup(OTHER) ?? Buffer.alloc(0)),
  strayService: () => map("services").update(encodeDestination("10.96.0.99:80/TCP"), Buffer.alloc(STRUCTS.service.bytes)),
  placeGone: () => void map("endpoints").delete(encodePlace(FOUR, 1)),
  placeMore: () => map("endpoints").update(encodePlace(FOUR, 6), encodeEndpoint("10.1.1.99:1")),
  placeFar: () => map("endpoints").update(encodePlace(FOUR, 2 ** 31), encodeEndpoint("10.1.1.99:1")),
  listOfNone: () => map("endpoints").update(encodePlace(TWO, 0), encodeEndpoint("10.1.1.10:8080")),
  settings: () => map("settings").update(Buffer.alloc(4), encodeCookie("1")),
  nodeAddress: () => map("node_addresses").update(encodeAddress("192.0.2.1"), Buffer.from([1, 0, 0, 0])),
  nodeAddressFlags: () => map("node_addresses").update(encodeAddress("172.18.0.1"), Buffer.from([1, 0, 0, 0])),
  podRange: () => map("pod_ranges").update(encodePodRange("192.0.2.0/24"), Buffer.from([1, 0, 0, 0])),
  podRangeGone: () => void map("pod_ranges").delete(encodePodRange("10.1.0.0/16")),
  primary: () => map("primaries").update(encodeAddress("0.0.0.0"), encodeAddress("192.0.2.1")),
  unusedRange: () => map("source_ranges").update(encodeSourceRange("7".repeat(16), "192.0.2.0/24"), Buffer.from([1, 0, 0, 0])),
  optOut: () => map("opted_out").update(encodeCookie("12345"), Buffer.from([1, 0, 0, 0])),
  unusedCounter: () => map("counters").update(Buffer.alloc(8, 7), Buffer.alloc(map("counters").valueBytes)),
  linkDetached: () => bpf.openLink(`${ROOT}/links/turnout_conn4`).detach(),
  pinGone: () => rmSync(`${ROOT}/links/turnout_conn6`),
  deviceLinkDetached: () => bpf.openLink(`${ROOT}/links/3-ingress`).detach(),
  devicePinGone: () => rmSync(`${ROOT}/links/3-egress`),
  tableGone: () => nft("delete table inet turnout-ebpf"),
  chainFlushed: () => nft("flush chain inet turnout-ebpf refuse"),
  chainGone: () => nft("delete chain inet turnout-ebpf nat"),
  chainMore: () => nft("add chain inet turnout-ebpf more"),
  packetProgramsGone: () => bpf.removePins(folderWith("/packets-")),
  programsGone: () => bpf.removePins(folderWith("/sockets-")),
  allMapsGone: () => bpf.removePins(folderWith("/services")),
  servingGone: () => rmdirSync(`${ROOT}/serving-IPv4`),
  everythingGone: () => bpf.removePins(ROOT),
};
