import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { fill } from "./kubectl.ts";

const VALUES = {
  SERVER: "https://172.18.0.254:6443",
  MODE: "nftables",
  BIND: "::",
  PODS: "10.1.0.0/16,fd00:1::/32",
  IMAGE: "a:b",
  IP: "fd00:96::a",
};

it("fills names, and tells one that has no value", () => {
  expect(fill("a @IP@ b@IP@", { IP: "::1" })).toBe("a ::1 b::1");
  expect(() => fill("@MODE@", {})).toThrow("no value for @MODE@");
});

it.each(["coredns.yaml", "kube-proxy.yaml", "kube-proxy-config.yaml"])("%s reads as objects once it is filled", async (name) => {
  const documents = parseAllDocuments(fill(await readFile(new URL(name, import.meta.url), "utf8"), VALUES));
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  expect(documents.map((document) => document.get("kind"))).not.toContain(undefined);
});
