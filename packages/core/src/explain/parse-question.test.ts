import { describe, expect, it } from "vitest";
import { parseQuestion, serviceNamed } from "./parse-question.ts";

describe("a question that can't be read", () => {
  const errorOf = (from: string, to: string): unknown => {
    try {
      return parseQuestion({ from, to, protocol: "tcp" });
    } catch (error) {
      const { what, hint } = error as { readonly what: string; readonly hint: string };
      return `${what}: ${hint}`;
    }
  };

  it.each([
    ["10.96.0.20:80", "10.1.1.6", "TO: no port: swapped? FROM comes first: turnout why 10.1.1.6 10.96.0.20:80"],
    ["[fd00::14]:80", "fd00:1::6", "TO: no port: swapped? FROM comes first: turnout why fd00:1::6 [fd00::14]:80"],
    ["10.1.1.6", "shop/near:http", "TO: a name is no address: write the Service's address: kubectl get service -n shop near"],
    ["10.1.1.6", "near.shop.svc:80", "TO: a name is no address: write the Service's address: kubectl get service -n shop near"],
    [
      "10.1.1.6",
      "near.shop.svc.cluster.local:80",
      "TO: a name is no address: write the Service's address: kubectl get service -n shop near",
    ],
    ["10.1.1.6", "10.96.0.20", "TO: no port: write it behind the address: 10.96.0.20:80"],
    ["10.1.1.6", "fd00::1", "TO: no port: write it behind the address: [fd00::1]:80"],
    ["10.1.1.6", "10.96.0.20:", "TO: no port: write its number behind the colon"],
    ["10.1.1.6", "10.96.0.20:99999", "TO: port 99999 is out of range: ports are 1 to 65535"],
    ["10.1.1.6", "10.96.0.20:65536", "TO: port 65536 is out of range: ports are 1 to 65535"],
    ["10.1.1.6", "[fd00::1]:0/udp", "TO: port 0 is out of range: ports are 1 to 65535"],
    [
      "10.1.1.6",
      "10.96.0.20:http",
      "TO: http is no number of a port: packets have no names of ports: write its number (kubectl get services -A | grep -wF 10.96.0.20 shows the Service's ports)",
    ],
    [
      "10.1.1.6",
      "cart:80",
      "TO: a name is no address: write the Service's cluster IP (kubectl get service -n NAMESPACE cart), or NAMESPACE/cart: the running proxy then names the addresses",
    ],
    ["10.1.1.6", "example.com:80", "TO: a name is no address: write the address that it has: getent ahosts example.com"],
    ["10.1.1.6", ":80", "TO: no address and port: write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp"],
    ["10.1.1.6", "10.96.0.300:80", "TO: no address and port: write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp"],
    ["host1", "10.96.0.20:80", "FROM: no address of a client: write the client's IP address, e.g. a pod's, or host for this node itself"],
  ])("%s %s", (from, to, text) => {
    expect(errorOf(from, to)).toBe(text);
  });
});

it("a Service's name is told from an address", () => {
  expect(serviceNamed("shop/near:http")).toEqual({ namespace: "shop", name: "near" });
  expect(serviceNamed("10.96.0.20:80")).toBeUndefined();
});
