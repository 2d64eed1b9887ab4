import { FOREIGN_BIT } from "@turnout/host/testing/nft";

/**
 * What is on the host before the backend comes: other people's tables, some with names much like ours.
 *
 * Shape: somebody sets a mark bit of their own before addresses are translated; what becomes of it is looked at beyond nft's hooks, see
 * `tracePacket`. Nothing of it stops a packet.
 */
export const FOREIGN_RULESET: string = ["ip", "ip6"]
  .flatMap((family) => {
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
      ...["prerouting", "output"].flatMap((hook) => [
        `add chain ${family} somebody mark-${hook} { type filter hook ${hook} priority -150; policy accept; }`,
        `add rule ${family} somebody mark-${hook} meta mark set meta mark or ${FOREIGN_BIT}`,
      ]),
      `add table ${family} turnout-of-somebody`,
      `add chain ${family} turnout-of-somebody dispatch`,
      `add chain ${family} turnout-of-somebody layout-2`,
    ];
  })
  .join("\n");
