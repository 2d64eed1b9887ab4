import { expect, test } from "vitest";
import { uplinksIn } from "./uplinks.ts";

const IPV4 = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
cni0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
`;
const zero = "0".repeat(32);
const IPV6 = `fd${zero.slice(2)} 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth0
${zero} 00 ${zero} 00 fe80${zero.slice(5)}1 00000400 00000002 00000000 00000003     up1
`;

test("what has a route to a next hop is an uplink", () => {
  expect(uplinksIn(IPV4, IPV6)).toEqual(["eth0", "up1"]);
  expect(uplinksIn("", "")).toEqual([]);
});
