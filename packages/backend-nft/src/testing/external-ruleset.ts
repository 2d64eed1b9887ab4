import { stagePeer } from "@turnout/conformance";
import { EXTERNAL_BIT } from "@turnout/host/testing/nft";

/** The mark bit of a backend whose settings name none. */
const DEFAULT_BIT = 0x4000;

/**
 * What is on the host before the backend comes: other people's tables, some with names much like ours.
 *
 * Shape: somebody sets a mark bit of their own before addresses are translated; what becomes of it is looked at beyond nft's hooks, see
 * `tracePacket`. Another rule rewrites the source of some packets that the backend has marked for that: the mark has to be cleared all the same. Nothing
 * of it stops a packet.
 */
export const EXTERNAL_RULESET: string = ["ip", "ip6"]
  .flatMap((family) => {
    const pod = stagePeer("pod-1-2").addresses[family === "ip" ? "IPv4" : "IPv6"];
    const address = family === "ip" ? "192.0.2.1" : "2001:db8::1";
    return [
      `add table ${family} somebody`,
      `add set ${family} somebody services { type ${family === "ip" ? "ipv4_addr" : "ipv6_addr"}; }`,
      `add element ${family} somebody services { ${address} }`,
      `add chain ${family} somebody guard { type filter hook input priority 0; policy accept; }`,
      `add rule ${family} somebody guard ${family} saddr @services drop comment "not ours"`,
      `add chain ${family} somebody watch { type filter hook forward priority -10; policy accept; }`,
      `add rule ${family} somebody watch counter accept`,
      `add chain ${family} somebody translate { type nat hook postrouting priority 50; policy accept; }`,
      `add rule ${family} somebody translate ${family} daddr ${address} masquerade`,
      `add rule ${family} somebody translate ${family} daddr ${pod} meta mark ${EXTERNAL_BIT | DEFAULT_BIT} masquerade`,
      ...["prerouting", "output"].flatMap((hook) => [
        `add chain ${family} somebody mark-${hook} { type filter hook ${hook} priority -150; policy accept; }`,
        `add rule ${family} somebody mark-${hook} meta mark set meta mark or ${EXTERNAL_BIT}`,
      ]),
      `add table ${family} turnout-of-somebody`,
      `add chain ${family} turnout-of-somebody dispatch`,
      `add chain ${family} turnout-of-somebody layout-2`,
    ];
  })
  .join("\n");
