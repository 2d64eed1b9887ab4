import { KUBE_PROXY_GATES, REMOVED_GATES } from "../gen/kube-proxy-gates.ts";
import { TURNOUT_GATES } from "./turnout-gates.ts";

/** A switch for something that is new or risky. */
export interface FeatureGate {
  readonly name: string;
  readonly stage: "alpha" | "beta" | "stable" | "deprecated";
  readonly default: boolean;
  /** It can't be set to anything but its default. */
  readonly isLocked: boolean;
}

/** A gate as it stands. */
export interface GateState {
  readonly name: string;
  /** As component-base writes it; "" is generally available. */
  readonly stage: "ALPHA" | "BETA" | "" | "DEPRECATED";
  readonly enabled: boolean;
}

/** What is said of gates, by name. */
export type GateSettings = Readonly<Record<string, boolean>>;

function gateOf(line: string): FeatureGate {
  const [name = "", stage, isOn, locked] = line.split(" ");
  return { name, stage: stage as FeatureGate["stage"], default: isOn === "true", isLocked: locked === "locked" };
}

/** Every gate that may be set: kube-proxy's, so that its manifests are taken, and Turnout's. */
const GATES: ReadonlyMap<string, FeatureGate> = new Map(
  [...KUBE_PROXY_GATES.trim().split("\n").map(gateOf), ...TURNOUT_GATES.map((gate) => ({ ...gate, isLocked: false }))].map((gate) => [
    gate.name,
    gate,
  ]),
);

/** Gates that kube-proxy had once, by the last minor version with them: a file of that time still has them. */
const REMOVED: ReadonlyMap<string, string> = new Map(
  REMOVED_GATES.trim()
    .split("\n")
    .map((line) => line.split(" ") as [string, string]),
);

/**
 * What is wrong with settings of gates, in kube-proxy's words; undefined when they are fine.
 *
 * Edges: a gate that is locked, or that only older kube-proxies have, may be set to anything: it has no effect, and {@link gatesWithoutEffect} has it.
 * @source k8s.io/component-base featuregate/feature_gate.go SetFromMap
 */
export function wrongGate(said: GateSettings): string | undefined {
  const unknown = Object.keys(said).find((name) => !GATES.has(name) && !REMOVED.has(name));
  return unknown === undefined ? undefined : `unrecognized feature gate: ${unknown}`;
}

/**
 * Tell whether a gate is on: as said, as AllAlpha or AllBeta say of its stage, or by its default.
 *
 * Edges: what is locked stays at its default; a gate that nobody knows is off.
 */
export function isGateOn(name: string, said: GateSettings): boolean {
  const gate = GATES.get(name);
  if (gate === undefined) return false;
  if (gate.isLocked) return gate.default;
  const all = gate.stage === "alpha" ? said["AllAlpha"] : gate.stage === "beta" ? said["AllBeta"] : undefined;
  return said[name] ?? all ?? gate.default;
}

/** The gates that something here asks for: Turnout's, and those of kube-proxy that mean the same here. */
const GATES_IN_USE: readonly string[] = [
  ...TURNOUT_GATES.map(({ name }) => name),
  "ComponentStatusz",
  "ComponentFlagz",
  "LoggingAlphaOptions",
  "LoggingBetaOptions",
  "AllowServiceExternalIPs",
  "KubeProxyIPVS",
  "KubeProxyNFTablesLocalhostNodePorts",
];
const STAGES: Readonly<Record<FeatureGate["stage"], GateState["stage"]>> = {
  alpha: "ALPHA",
  beta: "BETA",
  stable: "",
  deprecated: "DEPRECATED",
};

/**
 * Those of some settings that nothing here depends on, each with the reason where there is one; AllAlpha and AllBeta count as the gates that they
 * set. Pure.
 */
export function gatesWithoutEffect(said: GateSettings): readonly string[] {
  const sets = (name: string, gate: string): boolean => isGateOn(gate, { [name]: true }) !== isGateOn(gate, { [name]: false });
  const reason = (name: string): string => {
    const last = REMOVED.get(name);
    if (last !== undefined && !GATES.has(name)) return `${name}: kube-proxy ${last} was the last with it`;
    const gate = GATES.get(name);
    return gate?.isLocked === true && said[name] !== gate.default ? `${name}: locked to ${gate.default}` : name;
  };
  return Object.keys(said)
    .filter((name) => !GATES_IN_USE.some((gate) => sets(name, gate)))
    .map(reason);
}

/**
 * Tell whether Services' externalIPs are served by the gate AllowServiceExternalIPs, where the cluster has a version like `1.40`; undefined where
 * only the version decides, and it isn't known. Pure.
 *
 * Edges: kube-proxy has the gate from 1.36 on, and it is on by default there. It is to be off from 1.40 on, and the field unserved from 1.43 on.
 * @source KEP-5707
 */
export function servesExternalIPs(said: GateSettings, clusterVersion: string | undefined): boolean | undefined {
  const explicit = said["AllowServiceExternalIPs"];
  if (explicit !== undefined) return explicit;
  const [, minor] = /^v?1\.(\d+)/.exec(clusterVersion ?? "") ?? [];
  return minor === undefined ? undefined : Number(minor) < EXTERNAL_IPS_OFF_FROM;
}

/** The minor version from which on AllowServiceExternalIPs is to be off by default. */
const EXTERNAL_IPS_OFF_FROM = 40;

/** The state of each gate there is, whether something here asks for it or not, for the metric `kubernetes_feature_enabled`. Pure. */
export function gateStates(said: GateSettings): readonly GateState[] {
  return [...GATES.values()].map(({ name, stage }) => ({ name, stage: STAGES[stage], enabled: isGateOn(name, said) }));
}
