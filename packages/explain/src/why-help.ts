/**
 * What a running proxy explains packets with; what looks at the host is loaded with the first question.
 *
 * @packageDocumentation
 */
import type { AskedPacket, Fate, IPFamily, ParsedQuestion, Survey, World } from "@turnout/core";
import { createLinuxWorld, readHostAddresses } from "@turnout/host";
import type { HostAddresses, LinuxWorld } from "@turnout/host";
import type { RulePlaces, SurveyedNode } from "./why/host-survey.ts";

/** Devices of backends, on which are the addresses of Services and none of the host's own. */
const ADDRESSES_OF_SERVICES: readonly string[] = ["kube-ipvs0", "turnout0"];

/** Read the addresses of this host, without those of Services. */
export async function ownAddresses({ netlink }: Pick<LinuxWorld, "netlink">): Promise<HostAddresses> {
  return await readHostAddresses((family) => netlink.addresses(family), ...ADDRESSES_OF_SERVICES);
}

/** What this host tells about a packet: `addresses`, `locate` and `survey` of client's `WhyHelp`. */
export interface HostHelp {
  addresses(family: IPFamily): Promise<readonly string[]>;
  locate(question: ParsedQuestion, hostAddresses: readonly string[], signal: AbortSignal): Promise<AskedPacket>;
  survey(packet: AskedPacket, fate: Fate, node: Omit<SurveyedNode, keyof RulePlaces>, signal: AbortSignal): Promise<Survey>;
}

/** Look at the host of this process when a packet is asked about. */
export function lookAtHost(world: World, places: RulePlaces): HostHelp {
  return {
    async addresses(family) {
      const linux = createLinuxWorld(world);
      try {
        return (await ownAddresses(linux))[family];
      } finally {
        linux.close();
      }
    },
    // Loaded when the first packet is asked about: most proxies are never asked.
    async locate(question, hostAddresses, signal) {
      const { locatePacket } = await import("./why/locate-packet.ts");
      return await locatePacket(question, undefined, hostAddresses, world.exec, signal);
    },
    async survey(packet, fate, host, signal) {
      const { surveyPacket } = await import("./why/host-survey.ts");
      const linux = createLinuxWorld(world);
      try {
        return await surveyPacket(linux, packet, fate, { ...host, ...places }, signal);
      } finally {
        linux.close();
      }
    },
  };
}
