import type { IPFamily, Protocol } from "@turnout/core";
import { pickOne } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { POD_IPS, randomAddress } from "./random-address.ts";
import type { Random } from "./random-address.ts";

/** Slices are numbered downwards: their order by name is not the one they come in. */
export const FIRST_SLICE = 50;
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
const NODES: readonly unknown[] = ["node1", "node1", "node2", "node2", undefined, "", "Node 1!"];
const HINTS: readonly unknown[] = [
  undefined,
  { forZones: [{ name: "a" }] },
  { forZones: [{ name: "b" }], forNodes: [{ name: "node1" }] },
  { forZones: [{ name: "a" }, { name: "b" }], forNodes: [{ name: "node2" }] },
  { forNodes: [{ name: "node1" }, { name: "node2" }] },
  { forZones: [] },
  { forNodes: "node1" },
  { forZones: [{ name: "" }] },
];

/** The first one hides a slice, the second one a Service. */
const LABELS = ["service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"];

/** Draw the slice of a number; it belongs to one Service and family, whatever else is drawn. */
export function randomSlice(number: number, random: Random): RawObject {
  const family = number % 2 === 0 ? "IPv4" : "IPv6";
  const service = `s${Math.floor(number / 2) % 5}`;
  // Often alike on all: hints count only where every endpoint has one, and only when none is ready are others used.
  const hints = random() < 0.5 ? pickOne(HINTS, random) : undefined;
  const isDraining = random() < 0.2;
  const labels = { "kubernetes.io/service-name": service };
  return {
    kind: "EndpointSlice",
    metadata: {
      namespace: service === "s4" ? "lab" : "shop",
      name: `slice${FIRST_SLICE - number}`,
      creationTimestamp: pickOne(["2024-01-01T00:00:00Z", "2024-01-01T12:00:00Z", "2024-01-03T00:00:00Z", undefined], random),
      labels: random() < 0.97 ? labels : pickOne([undefined, ...LABELS.map((label) => ({ ...labels, [label]: "" }))], random),
    },
    addressType: random() < 0.97 ? family : pickOne(["FQDN", undefined], random),
    ports: random() < 0.97 ? randomSlicePorts(random) : pickOne([null, [], 7], random),
    endpoints:
      random() < 0.97
        ? [0, 1, 2, 3].filter(() => random() < 0.6).map(() => randomEndpoint({ family, hints, isDraining }, random))
        : pickOne([null, {}, [null, "x"]], random),
  };
}

function randomSlicePorts(random: Random): readonly unknown[] {
  const all = ["web", "dns", ""].flatMap((name) => [...PROTOCOLS, undefined].map((protocol) => ({ name, protocol })));
  return all
    .filter(() => random() < 0.6)
    .map(({ name, protocol }) => ({
      name: random() < 0.97 ? name : undefined,
      protocol,
      port: random() < 0.97 ? pickOne([8080, 8080, 8080, 8081], random) : pickOne([0, null, "8080", 70_000], random),
    }));
}

interface EndpointMood {
  readonly family: IPFamily;
  readonly hints: unknown;
  readonly isDraining: boolean;
}

function randomEndpoint({ family, hints, isDraining }: EndpointMood, random: Random): unknown {
  const condition = (): unknown => pickOne([true, false, undefined, null, true, random() < 0.1 ? "yes" : true], random);
  const usual =
    random() < 0.6
      ? pickOne([{ ready: true }, {}, undefined], random)
      : { ready: condition(), serving: condition(), terminating: condition() };
  return {
    addresses: random() < 0.97 ? [randomAddress(POD_IPS[family], 0.03, random), "10.1.9.9"] : pickOne([[], undefined, "10.1.1.1"], random),
    conditions: isDraining ? { ready: false, serving: condition(), terminating: condition() } : usual,
    nodeName: pickOne(NODES, random),
    hints: hints ?? pickOne(HINTS, random),
  };
}
