import { X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import { createAuthority } from "./certificate.ts";

it("issues certificates that OpenSSL reads, verifies and matches with hosts", () => {
  const nowMs = Date.parse("2026-03-04T05:06:07Z");
  const authority = createAuthority("lab authority", nowMs);
  const ca = new X509Certificate(authority.cert);
  const { cert, key } = authority.issue({ commonName: "api server", hosts: ["127.0.0.1", "fd00::a:1", "::1", "api.lab"] });
  const leaf = new X509Certificate(cert);
  expect([ca.ca, leaf.ca]).toEqual([true, false]);
  expect(leaf.verify(ca.publicKey)).toBe(true);
  expect(leaf.checkIssued(ca)).toBe(true);
  expect(leaf.subject).toBe("CN=api server");
  expect(new X509Certificate(authority.issue({ commonName: "system:node:a", organization: "system:nodes" }).cert).subject).toBe(
    "O=system:nodes\nCN=system:node:a",
  );
  expect(new Date(leaf.validTo).toISOString()).toBe("2026-03-05T05:06:07.000Z");
  expect(leaf.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect([leaf.checkIP("fd00::a:1"), leaf.checkIP("::1"), leaf.checkIP("::2")]).toEqual(["fd00::a:1", "::1", undefined]);
  expect(leaf.checkHost("api.lab")).toBe("api.lab");
  expect(key).toContain("PRIVATE KEY");
  expect(leaf.verify(new X509Certificate(createAuthority("other", nowMs).cert).publicKey)).toBe(false);
});
