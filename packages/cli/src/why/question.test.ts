import type { Exec } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { locatePacket, parseQuestion, serviceNamed } from "./question.ts";

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

describe("a question that can't be read", () => {
  const hintOf = (from: string, to: string): unknown => {
    try {
      return parseQuestion({ from, to, protocol: "tcp" });
    } catch (error) {
      return (error as { readonly hint?: string }).hint;
    }
  };

  it.each([
    ["10.96.0.20:80", "10.1.1.6", "swapped? FROM comes first: turnout why 10.1.1.6 10.96.0.20:80"],
    ["[fd00::14]:80", "fd00:1::6", "swapped? FROM comes first: turnout why fd00:1::6 [fd00::14]:80"],
    ["10.1.1.6", "shop/near:http", "write the Service's address: kubectl get service -n shop near"],
    ["10.1.1.6", "near.shop.svc:80", "write the Service's address: kubectl get service -n shop near"],
    ["10.1.1.6", "near.shop.svc.cluster.local:80", "write the Service's address: kubectl get service -n shop near"],
    ["10.1.1.6", "10.96.0.20", "write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp"],
    ["10.1.1.6", "example.com:80", "write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp"],
  ])("%s %s", (from, to, hint) => {
    expect(hintOf(from, to)).toBe(hint);
  });
});

it("a Service's name is told from an address", () => {
  expect(serviceNamed("shop/near:http")).toEqual({ namespace: "shop", name: "near" });
  expect(serviceNamed("10.96.0.20:80")).toBeUndefined();
});
