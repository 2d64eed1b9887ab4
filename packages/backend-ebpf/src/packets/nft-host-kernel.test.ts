import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createExec } from "@turnout/host";
import { createFakeLog, createFakeNetlink, nftTableIn } from "@turnout/host/testing";
import { imageNft } from "@turnout/house/images";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NftHost } from "./nft-host.ts";
import { TABLE_OBJECT } from "./nft-table.ts";

const NEWER = imageNft("root", "netns", "ip", "nft");
/** What an nft before 1.1 can't read. */
const MAP = "table inet other {\n map by-device { type ifname : verdict; }\n}\n";
const { signal } = new AbortController();

describe("the table of nft, next to a map that a newer nft made", NEWER.needs, () => {
  const name = `tebpfnft-${process.pid}`;
  const inside = (...args: readonly string[]): string[] => ["netns", "exec", name, ...args];
  beforeEach(() => {
    execFileSync("ip", ["netns", "add", name]);
    execFileSync("ip", inside(join(NEWER.folder, "nft"), "-f", "-"), { input: MAP });
  });
  afterEach(() => {
    execFileSync("ip", ["netns", "del", name]);
  });

  it("is made, read, made anew and removed", async () => {
    const exec = createExec();
    const host = new NftHost({
      exec: {
        run: (file, args, options) => exec.run("ip", inside(file, ...args), options),
        open: (file, args) => exec.open("ip", inside(file, ...args)),
      },
      log: createFakeLog(),
      netlink: { ...createFakeNetlink(), ...nftTableIn(`/run/netns/${name}`) },
    });
    expect(await host.read()).toBeUndefined();
    for (let times = 0; times < 2; times++) {
      await host.write(signal);
      expect(await host.read()).toEqual(TABLE_OBJECT);
    }
    for (let times = 0; times < 2; times++) {
      await host.drop();
      expect(await host.read()).toBeUndefined();
    }
    host.close();
  });
});
