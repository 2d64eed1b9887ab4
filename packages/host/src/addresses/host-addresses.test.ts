import type { IPFamily } from "@turnout/core";
import { expect, it } from "vitest";
import { readHostAddresses } from "./host-addresses.ts";

it("the host's addresses are sorted, each once, without link-local ones and those of one's own device", async () => {
  const all: Readonly<Record<IPFamily, readonly (readonly [ip: string, link: string])[]>> = {
    IPv4: [
      ["172.18.0.2", "eth0"],
      ["127.0.0.1", "lo"],
      ["172.18.0.2", "eth1"],
      ["169.254.1.1", "eth0"],
      ["10.96.0.1", "own0"],
    ],
    IPv6: [
      ["fe80::1", "eth0"],
      ["::1", "lo"],
      ["fd00:96::1", "own0"],
    ],
  };
  const list = (family: IPFamily): Promise<readonly { ip: string; link: string }[]> =>
    Promise.resolve(all[family].map(([ip, link]) => ({ ip, link })));
  expect(await readHostAddresses(list, "own0")).toEqual({ IPv4: ["127.0.0.1", "172.18.0.2"], IPv6: ["::1"] });
  expect((await readHostAddresses(list)).IPv4).toContain("10.96.0.1");
});
