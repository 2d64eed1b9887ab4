import { describe, expect, it } from "vitest";
import { parseQuestion, serviceNamed } from "./parse-question.ts";

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
