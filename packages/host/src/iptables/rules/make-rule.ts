import type { CIDR } from "@turnout/core";
import type { PartlyKnown, Test } from "../../rules/rule.ts";
import { isDevice } from "../../rules/values.ts";
import { ruleText } from "../text/rule-text.ts";
import { isInNetwork } from "./addresses.ts";
import { inverted } from "./extension.ts";
import type { IptablesRule, Wanted } from "./rule.ts";

type Parts = Omit<IptablesRule, "text" | "tests" | "actions">;

/** Put a rule together; `unknown` are questions that can't be answered. Pure. */
export function ruleOf(parts: Parts, unknown: readonly Test[]): IptablesRule {
  const { source, destination, inputLink, outputLink, protocol, matches, target, chain, isGoto } = parts;
  const heads: readonly (readonly [string, Wanted<string> | undefined, Test])[] = [
    ["-s", cidrText(source), (packet) => isInNetwork(packet.source, source)],
    ["-d", cidrText(destination), (packet) => isInNetwork(packet.destination, destination)],
    ["-i", inputLink?.value === "+" ? undefined : inputLink, (packet) => isDevice(packet.inDevice, inputLink?.value ?? "")],
    ["-o", outputLink?.value === "+" ? undefined : outputLink, (packet) => isDevice(packet.outDevice, outputLink?.value ?? "")],
    ["-p", protocol, (packet) => isProtocol(packet, protocol?.value ?? "")],
  ];
  const asked = heads.flatMap(([option, wanted, test]) => (wanted === undefined ? [] : [{ option, wanted, test }]));
  const texts = asked.map(({ option, wanted }) => `${wanted.isInverted ? "! " : ""}${option} ${wanted.value}`);
  const jump = chain === undefined ? [] : [`-${isGoto ? "g" : "j"} ${chain}`];
  return {
    ...parts,
    text: ruleText({
      matches: [...texts, ...matches.map(({ text }) => text), ...jump],
      ...(target === undefined ? {} : { target: target.text }),
    }),
    tests: [
      ...asked.map(({ wanted, test }) => (wanted.isInverted ? inverted(test) : test)),
      ...unknown,
      ...matches.flatMap(({ tests }) => tests),
    ],
    actions: [target?.action ?? (chain === undefined ? { does: "nothing" } : { does: isGoto ? "goto" : "jump", chain })],
  };
}

/** Undefined: all addresses. */
function cidrText(wanted: Wanted<CIDR> | undefined): Wanted<string> | undefined {
  if (wanted === undefined || (wanted.value.prefixLength === 0 && !wanted.isInverted)) return undefined;
  return { value: wanted.value.text, isInverted: wanted.isInverted };
}

function isProtocol({ protocol }: PartlyKnown, name: string): boolean | undefined {
  return protocol === undefined ? undefined : name === protocol || (name === "ipv6-icmp" && protocol === "icmpv6");
}
