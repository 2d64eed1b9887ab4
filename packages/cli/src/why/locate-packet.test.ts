import { parseQuestion, type Exec } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { locatePacket } from "./locate-packet.ts";

const QUESTION = parseQuestion({ from: "203.0.113.7", to: "198.51.100.10:80", protocol: "tcp" });
const LINKS = JSON.stringify(["lo", "eth0", "veth5"].map((ifname) => ({ ifname, flags: ["UP"], mtu: 1500 })));
const exec = { run: async () => ({ code: 0, stdout: LINKS, stderr: "" }) } as unknown as Exec;
const { signal } = new AbortController();

describe("the device that a packet comes in by", () => {
  it("has to be one of this host's", async () => {
    await expect(locatePacket(QUESTION, "eth9", [], exec, signal)).rejects.toMatchObject({
      code: "invalid_object",
      message: expect.stringContaining("no device eth9 here") as string,
      hint: "there are eth0, veth5",
    });
  });

  it("is taken as it is said", async () => {
    await expect(locatePacket(QUESTION, "eth0", [], exec, signal)).resolves.toMatchObject({ device: "eth0", source: "203.0.113.7" });
  });
});
