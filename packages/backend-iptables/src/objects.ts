import type { RulesObject } from "@turnout/host/iptables/text";

/** A piece of the guard that kubelet has as well: the chain, its rule, a jump to it. Key: `filter KUBE-FIREWALL`, `filter INPUT RULE`. */
export interface GuardObject {
  readonly kind: "guard";
  readonly key: string;
  readonly value: true;
}

/** A kernel parameter, by its dotted name. */
export interface SysctlObject {
  readonly kind: "sysctl";
  readonly key: string;
  readonly value: string;
}

/** A counter of packets that rules name; both families use the same ones. Key: its name. */
export interface CounterObject {
  readonly kind: "counter";
  readonly key: string;
  readonly value: true;
}

/** Everything this backend keeps in the kernel. Rules are in the form in which `iptables-save` prints them. */
export type IptablesObject = RulesObject | GuardObject | SysctlObject | CounterObject;
