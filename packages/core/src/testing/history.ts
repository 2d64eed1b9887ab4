import { rawNode, rawService, rawSlice } from "./objects.ts";
import type { EndpointShort, RawObject } from "./objects.ts";
import type { Store } from "../state/store.ts";
import { upsertRaw } from "./view.ts";

/** One thing that happens to the API objects; everything in it is a small number, so that any generator can make it. */
export interface ObjectEvent {
  readonly do: "service" | "slice" | "node" | "removeService" | "removeSlice";
  /** Which object. */
  readonly which: number;
  /** Which of its forms. */
  readonly form: number;
}

const SERVICES = 4;
const SLICES = 6;
const SPECS: readonly RawObject[] = [
  {},
  { clusterIP: "None" },
  { internalTrafficPolicy: "Local" },
  { externalIPs: ["198.51.100.1"], externalTrafficPolicy: "Local" },
  { externalIPs: ["198.51.100.1", "198.51.100.2"] },
  { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] },
  {
    type: "NodePort",
    ports: [
      { name: "http", port: 80, nodePort: 30080 },
      { name: "dns", port: 53, protocol: "UDP", nodePort: 30053 },
    ],
  },
  { sessionAffinity: "ClientIP", ports: [{ name: "dns", port: 53, protocol: "UDP" }] },
  { type: "Portal" },
];
const ENDPOINTS: readonly (readonly EndpointShort[])[] = [
  [],
  [{ ip: "10.1.1.1", node: "node1" }],
  [{ ip: "10.1.2.1", node: "node2" }],
  [
    { ip: "10.1.1.1", node: "node1", ready: false, terminating: true },
    { ip: "10.1.2.1", node: "node2" },
  ],
  [
    { ip: "10.1.1.1", node: "node1", zones: ["a"] },
    { ip: "10.1.2.1", node: "node2", zones: ["b"] },
  ],
  [{ ip: "10.1.2.1", node: "node2", ready: false, serving: false }],
  [{ ip: "127.0.0.1" }, { ip: "10.1.1.2", node: "node1" }],
];
const ZONES: readonly (string | undefined)[] = [undefined, "a", "b"];

/** Carry out one event on a store. Four Services with clashing addresses, six slices that wander between them, one node. */
export function carryOut(store: Store, { do: what, which, form }: ObjectEvent): void {
  const service = which % SERVICES;
  const slice = which % SLICES;
  if (what === "service") {
    // Ages differ, and change with the form: a Service may be deleted and made again.
    const created = `2024-01-0${1 + ((service + form) % 5)}T00:00:00Z`;
    upsertRaw(store, rawService(`s${service}`, { clusterIP: `10.96.0.${service % 3}`, ...SPECS[form % SPECS.length] }, { created }));
  } else if (what === "slice") {
    const ports = [
      { name: "http", port: 8080 },
      { name: "dns", port: 5353, protocol: "UDP" },
    ].slice(0, 1 + (form % 2));
    upsertRaw(store, rawSlice(`s${(slice + form) % SERVICES}`, ENDPOINTS[form % ENDPOINTS.length] ?? [], { name: `slice${slice}`, ports }));
  } else if (what === "node") {
    const zone = ZONES[form % ZONES.length];
    upsertRaw(store, rawNode("node1", { ...(zone === undefined ? {} : { zone }), addresses: [`172.18.0.${1 + (form % 2)}`] }));
  } else if (what === "removeService") {
    store.remove("Service", "shop", `s${service}`);
  } else {
    store.remove("EndpointSlice", "shop", `slice${slice}`);
  }
}
