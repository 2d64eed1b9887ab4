import type { PeerCertificate } from "node:tls";
import { describe, expect, test } from "vitest";
import { certificateRights } from "./peer-rights.ts";

const of = (CN: unknown): PeerCertificate => ({ subject: { CN } }) as unknown as PeerCertificate;

describe("a certificate gives", () => {
  const cases: readonly [name: string, certificate: PeerCertificate | undefined, node: string, may: boolean][] = [
    ["a node the right to ask for itself", of("system:node:a"), "a", true],
    ["a node no right to ask for another", of("system:node:a"), "b", false],
    ["a node no right to ask for one whose name begins so", of("system:node:a"), "ab", false],
    ["a named one the right to ask for any", of("relay"), "b", true],
    ["others no right", of("admin"), "admin", false],
    ["no right without a common name", of(undefined), "a", false],
    ["no right with an empty one", of(""), "", false],
    ["no right with two", of(["system:node:a", "relay"]), "a", false],
    ["no right when there is none", undefined, "a", false],
  ];
  test.each(cases)("%s", (_name, certificate, node, may) => {
    const rights = certificateRights(new Set(["relay", ""]))(certificate);
    const refusal = ((): string => {
      try {
        rights.check(node);
        return "";
      } catch (error) {
        return String(error);
      }
    })();
    expect(refusal === "").toBe(may);
    expect(refusal.includes("[permission_denied]")).toBe(!may);
  });

  test.each([
    [of("system:node:a"), 'the certificate of "system:node:a" may ask for node "a" alone, not for this one: node b'],
    [of("admin"), 'the certificate of "admin" may ask for no node, not for this one: node b'],
    [of("system:node:"), 'the certificate of "system:node:" may ask for no node'],
    [undefined, "the certificate of nobody (it has no single common name) may ask for no node"],
  ])("a refusal that says whose it is and what it may ask for", (certificate, words) => {
    expect(() => certificateRights(new Set())(certificate).check("b")).toThrow(words);
  });

  test("a right to all nodes is for the names that were given one, and a refusal says whose it is", () => {
    const rightsOf = certificateRights(new Set(["relay"]));
    rightsOf(of("relay")).checkAll();
    expect(() => rightsOf(of("system:node:a")).checkAll()).toThrow(
      'the certificate of "system:node:a" gives no right to ask for all nodes',
    );
    expect(() => rightsOf(undefined).checkAll()).toThrow("the certificate of nobody (it has no single common name) gives no right");
    expect(() => rightsOf(of("x".repeat(5_000))).checkAll()).toThrow(/x{300}" gives/);
  });
});
