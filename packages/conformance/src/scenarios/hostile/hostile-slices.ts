import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../../runner/scenario.ts";
import { service, slices } from "../../runner/short.ts";
import { FORBIDDEN, GOOD, NONSENSE } from "./nonsense.ts";
import { EVERY_CLIENT, asks, EVERY_WAY } from "../probes.ts";

const WEB = service("web", { number: 1, ways: ["nodePort", "externalIP", "loadBalancerIP"] });
const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;

/** Bad slices and bad parts of slices beside good ones. */
export const HOSTILE_SLICES: readonly Scenario[] = [
  {
    name: "endpoints that are no address of a pod are refused, and good ones work",
    rules: ["R-52", "R-55", "R-11", "R-14"],
    steps: [
      {
        say: "forbidden, malformed and other families' addresses",
        put: [
          WEB,
          ...slices("web", ["pod-1-1"]).map((slice) => ({
            ...slice,
            endpoints: [
              ...FORBIDDEN.map((address) => ({ addresses: [address], nodeName: "node1" })),
              ...NONSENSE.map((address) => ({ addresses: [address], nodeName: "node1" })),
              { addresses: [slice["addressType"] === "IPv4" ? "fd00:1:1::2" : "10.1.1.2"], nodeName: "node1" },
              { addresses: "10.1.1.2" },
              {},
              null,
              "10.1.1.2",
              ...(slice["endpoints"] as readonly unknown[]),
            ],
          })),
        ],
        probes: GOOD,
      },
      {
        say: "bad conditions, names and hints",
        put: slices("web", []).map((slice) => ({
          ...slice,
          endpoints: [
            {
              addresses: [slice["addressType"] === "IPv4" ? "10.1.1.1" : "fd00:1:1::1"],
              conditions: { ready: "no", serving: 0, terminating: "yes" },
              nodeName: 'node1"; drop',
              hints: { forZones: "zone-b", forNodes: 7 },
            },
            { addresses: [slice["addressType"] === "IPv4" ? "10.1.2.1" : "fd00:1:2::1"], conditions: "none", hints: [], nodeName: {} },
          ],
        })),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "bad ports",
        put: slices("web", ["pod-1-1"]).map((slice) => ({
          ...slice,
          ports: [
            ...PROTOCOLS.flatMap((protocol) => [
              { name: protocol.toLowerCase(), protocol, port: 70_000 },
              { name: protocol.toLowerCase(), protocol, port: "8080" },
              { name: protocol.toLowerCase(), protocol, port: -1 },
            ]),
            { name: "tcp", protocol: "ICMP", port: 8080 },
            null,
            "8080",
            ...(slice["ports"] as readonly unknown[]),
          ],
        })),
        probes: GOOD,
      },
    ],
  },
  {
    name: "slices nobody can place are skipped, and good ones work",
    rules: ["R-11", "R-55"],
    steps: [
      {
        say: "without a label, of no family, of nothing",
        put: [
          WEB,
          ...slices("web", ["pod-1-1"]),
          ...slices("web", ["pod-1-2"], "unlabelled").map((slice) => ({
            ...slice,
            metadata: { namespace: "kit", name: (slice["metadata"] as RawObject)["name"] },
          })),
          ...slices("web", ["pod-1-2"], "nofamily", { addressType: "IPv5" }),
          ...slices("web", ["pod-1-2"], "nothing", { endpoints: "all", ports: 8080 }),
        ],
        probes: GOOD,
      },
      {
        say: "the good ones lose their label",
        put: slices("web", ["pod-1-1"]).map((slice) => ({
          ...slice,
          metadata: { namespace: "kit", name: (slice["metadata"] as RawObject)["name"] },
        })),
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      { say: "and have it again", put: slices("web", ["pod-1-1"]), probes: GOOD },
    ],
  },
];
