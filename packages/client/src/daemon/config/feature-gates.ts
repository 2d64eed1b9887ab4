import { KUBE_PROXY_GATES } from "./kube-proxy-gates.ts";
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

/** Find a gate by its name; undefined when kube-proxy has none such. */
export function featureGate(name: string): FeatureGate | undefined {
  return GATES.get(name);
}

/**
 * What is wrong with settings of gates, in kube-proxy's words; undefined when they are fine.
 * @source k8s.io/component-base featuregate/feature_gate.go SetFromMap
 */
export function wrongGate(said: GateSettings): string | undefined {
  for (const [name, isOn] of Object.entries(said)) {
    const gate = GATES.get(name);
    if (gate === undefined) return `unrecognized feature gate: ${name}`;
    if (gate.isLocked && isOn !== gate.default) return `cannot set feature gate ${name} to ${isOn}, feature is locked to ${gate.default}`;
  }
  return undefined;
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
];
const STAGES: Readonly<Record<FeatureGate["stage"], GateState["stage"]>> = {
  alpha: "ALPHA",
  beta: "BETA",
  stable: "",
  deprecated: "DEPRECATED",
};

/** Those of some settings that nothing here depends on; AllAlpha and AllBeta count as the gates that they set. Pure. */
export function gatesWithoutEffect(said: GateSettings): readonly string[] {
  const sets = (name: string, gate: string): boolean => isGateOn(gate, { [name]: true }) !== isGateOn(gate, { [name]: false });
  return Object.keys(said).filter((name) => !GATES_IN_USE.some((gate) => sets(name, gate)));
}

/** The state of each gate there is, whether something here asks for it or not, for the metric `kubernetes_feature_enabled`. Pure. */
export function gateStates(said: GateSettings): readonly GateState[] {
  return [...GATES.values()].map(({ name, stage }) => ({ name, stage: STAGES[stage], enabled: isGateOn(name, said) }));
}
