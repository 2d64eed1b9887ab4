/** A switch for something of Turnout's that is new or risky, in the words of Kubernetes. */
export interface TurnoutGate {
  readonly name: TurnoutGateName;
  readonly stage: "alpha" | "beta" | "stable";
  readonly default: boolean;
}

/**
 * - `TurnoutTakeOver`: where no backend is named, the one whose rules are in force serves on. Off: the first that this host can run.
 * - `TurnoutRepairOnNotice`: what others change is compared and repaired as soon as the kernel tells. Off: once each sync period, as in kube-proxy.
 */
export type TurnoutGateName = "TurnoutTakeOver" | "TurnoutRepairOnNotice";

/** Turnout's gates. Their names have a prefix, so that kube-proxy never gets one of the same name. */
export const TURNOUT_GATES: readonly TurnoutGate[] = [
  { name: "TurnoutTakeOver", stage: "beta", default: true },
  { name: "TurnoutRepairOnNotice", stage: "beta", default: true },
];
