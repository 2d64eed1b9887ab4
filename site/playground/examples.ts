import { HOST_ADDRESSES, packetOf, probeText, SCENARIOS, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS } from "@turnout/conformance";
import type { ObjectRef, Packet, Probe, Scenario } from "@turnout/conformance";
import { FAMILIES, hostPort } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { stringify } from "yaml";
import type { PlaygroundState } from "./state.ts";

/** A packet of a scenario's step. */
export interface ExamplePacket {
  /** Who asks for what, and by the scenario's words what must come of it. */
  readonly text: string;
  readonly from: string;
  readonly to: string;
}

/** A step of a conformance scenario, as something that could have been typed. */
export interface Example {
  readonly say: string;
  readonly state: Omit<PlaygroundState, "from" | "to" | "backend">;
  readonly packets: readonly ExamplePacket[];
}

/** The scenarios that can be shown: those that are about more than one packet's fate at a time can be looked at step by step. */
export const EXAMPLE_SCENARIOS: readonly Scenario[] = SCENARIOS.filter(
  ({ settings = {}, steps }) =>
    (settings.detectLocal === undefined || settings.detectLocal.mode === "ClusterCIDR") &&
    steps.some(({ probes = [] }) => probes.length > 0),
);

/** Say what a scenario is about, with its rules. Pure. */
export function scenarioTitle({ name, rules }: Scenario): string {
  return `${rules.join(" ")}: ${name}`;
}

/** Write a scenario's steps, one after another, each with all objects that are there then. Pure. */
export function examplesOf(scenario: Scenario): readonly Example[] {
  const objects = new Map<string, RawObject>();
  const services = new Map<string, RawObject>();
  const put = (raw: RawObject): void => {
    const ref = refOf(raw);
    if (ref.kind === "Service") services.set(ref.name, raw);
    objects.set(idOf(ref), raw);
  };
  for (const raw of STAGE_OBJECTS) put(raw);
  return scenario.steps.map(({ say, put: added = [], remove = [], probes = [] }) => {
    for (const raw of added) put(raw);
    for (const ref of remove) objects.delete(idOf(ref));
    return { say, state: stateOf(scenario, [...objects.values()]), packets: packetsOf(scenario, probes, services) };
  });
}

function stateOf({ settings, hostAddresses }: Scenario, objects: readonly RawObject[]): Example["state"] {
  const { detectLocal, masqueradeAll, nodePortAddresses } = { ...STAGE_SETTINGS, ...settings };
  const order = ["Service", "EndpointSlice", "Node", "ServiceCIDR"];
  const sorted = objects.toSorted((a, b) => order.indexOf(String(a["kind"])) - order.indexOf(String(b["kind"])));
  return {
    manifests: sorted.map((object) => stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })).join("---\n"),
    node: STAGE_NODE,
    pods: detectLocal.mode === "ClusterCIDR" ? detectLocal.clusterCIDRs.join(", ") : "",
    addresses: FAMILIES.flatMap((family) => [...HOST_ADDRESSES[family].slice(1), ...(hostAddresses?.[family] ?? [])]).join(", "),
    nodePortAddresses: nodePortAddresses?.join(", ") ?? "",
    masqueradeAll,
  };
}

/** In the first family and protocol that the scenario has. */
function packetsOf(scenario: Scenario, probes: readonly Probe[], services: ReadonlyMap<string, RawObject>): readonly ExamplePacket[] {
  const family: IPFamily = scenario.families?.[0] ?? "IPv4";
  const protocol: Protocol = scenario.protocols?.[0] ?? "TCP";
  return probes.map((probe) => {
    const { source, destination, port, link }: Packet = packetOf(probe, family, protocol, services);
    return {
      text: `${probeText(probe)}: ${probe.sees}`,
      from: link === "" && probe.as === undefined ? "host" : source,
      to: `${hostPort(destination, port)}${protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`}`,
    };
  });
}

/** Some scenarios have objects that are none. */
function refOf(raw: RawObject): ObjectRef {
  const { namespace = "", name = "" } = (raw["metadata"] ?? {}) as { readonly namespace?: string; readonly name?: string };
  return { kind: raw["kind"] as ObjectRef["kind"], namespace, name };
}

function idOf({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}
