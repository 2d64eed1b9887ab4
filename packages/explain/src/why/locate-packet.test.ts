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

it("without a route the host is taken to send from an address that others can answer", async () => {
  const lost = { run: async () => ({ code: 2, stdout: "", stderr: "RTNETLINK answers: Network is unreachable" }) } as unknown as Exec;
  const asked = parseQuestion({ from: "host", to: "10.96.0.20:80", protocol: "tcp" });
  expect(await locatePacket(asked, undefined, ["127.0.0.1", "172.18.0.1"], lost, signal)).toMatchObject({
    source: "172.18.0.1",
    device: "",
  });
  expect(await locatePacket(asked, undefined, ["127.0.0.1"], lost, signal)).toMatchObject({ source: "127.0.0.1" });
});
