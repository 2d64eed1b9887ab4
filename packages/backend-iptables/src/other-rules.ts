import { objectId } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import { readListedRule } from "@turnout/host/iptables";
import { placeOf, rulesOf } from "@turnout/host/iptables/text";
import { newPacket } from "@turnout/host/rules";
import type { Unmarked } from "@turnout/host/rules";
import type { IptablesObject } from "./objects.ts";

/** Stands for the addresses of the host: no rule of a Service names it. */
const HOST_ADDRESS = "0.0.0.0";

/**
 * Tell which rules of shared chains packets for these objects meet, besides the objects themselves: one of a Service that is gone, or of another program. Pure.
 *
 * Shape: rules about another address, protocol or port are other rows'. What a match asks that isn't known here is taken to fit.
 */
export function otherRulesThan(asked: readonly IptablesObject[], family: IPFamily): (object: IptablesObject) => boolean {
  const ids = new Set(asked.map(objectId));
  const services = asked.flatMap((object) => (object.kind === "rule" ? [packetFor(placeOf(object).rule, family)] : []));
  const ofChains = asked.flatMap((object) => (object.kind === "chain" ? rulesOf(object.value) : []));
  // In the filter table packets have their endpoint's address already.
  const translated = [...services, ...ofChains.flatMap((rule) => translatedBy(rule, family))];
  return (object) => {
    if (object.kind !== "rule" || ids.has(objectId(object))) return false;
    const { table, chain, rule } = placeOf(object);
    const isForHost = chain === "KUBE-NODEPORTS" || rule.includes("--dst-type LOCAL");
    const packets = (table === "filter" ? translated : services).filter(({ destination }) => !isForHost || destination === HOST_ADDRESS);
    const { tests } = readListedRule(rule, family);
    return packets.some((packet) => tests.every((test) => test(packet) !== false));
  };
}

/** The packets that a Service's rule is for. */
function packetFor(rule: string, family: IPFamily): Unmarked {
  const { destination, protocol } = readListedRule(rule, family);
  const port = /--dport (\d+)/.exec(rule.replaceAll(/"(?:[^"\\]|\\.)*"/g, ""))?.[1];
  return {
    ...newPacket(family),
    destination: destination?.value.text.split("/")[0] ?? HOST_ADDRESS,
    protocol: protocol?.value,
    destinationPort: port === undefined ? undefined : Number(port),
  };
}

/** What packets are that a rule translates. */
function translatedBy(rule: string, family: IPFamily): readonly Unmarked[] {
  const { actions, protocol } = readListedRule(rule, family);
  return actions.flatMap((action) =>
    action.does === "translate"
      ? [{ ...newPacket(family), destination: action.address, protocol: protocol?.value, destinationPort: action.port }]
      : [],
  );
}
