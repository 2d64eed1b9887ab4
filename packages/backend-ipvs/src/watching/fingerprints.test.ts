import { expect, it } from "vitest";
import { DEVICE } from "../names.ts";
import { BoundCount, writtenContents } from "./fingerprints.ts";

it("addresses that changed while they were counted are counted again", async () => {
  let counts = 0;
  const bound = new BoundCount();
  const netlink = {
    async addresses() {
      counts += 1;
      // The kernel tells of a change before the first answer is here.
      if (counts === 1) bound.forget();
      return [{ ip: "10.96.0.1", link: DEVICE, prefixLength: 32 }];
    },
  };
  const read = async (): Promise<number> => await bound.read(netlink, "IPv4");
  expect([await read(), await read(), await read(), counts]).toEqual([1, 1, 1, 2]);
});

it("a plan of very many objects is taken to change any sign", () => {
  const entries = (count: number): Parameters<typeof writtenContents>[0] => [
    {
      do: "fill",
      entries: Array.from({ length: count }, (_, index) => ({
        kind: "entry",
        key: `KUBE-CLUSTER-IP 10.96.0.${index},tcp:80`,
        value: true,
      })),
    } as never,
  ];
  expect(writtenContents(entries(2))).toEqual(new Set(["set KUBE-CLUSTER-IP"]));
  expect(writtenContents(entries(1_001))).toBeUndefined();
});
