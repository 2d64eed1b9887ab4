import { describe, expect, it } from "vitest";
import { FEATURES, missingFeatures } from "./features.ts";
import type { BpfFeature, Found } from "./features.ts";
import { missingRights } from "./probe.ts";

function found(parts: Partial<Record<BpfFeature, Found>>): Readonly<Record<BpfFeature, Found>> {
  return { ...(Object.fromEntries(FEATURES.map((feature) => [feature, true])) as Record<BpfFeature, Found>), ...parts };
}

describe("missing features", () => {
  it("are none where all are there", () => expect(missingFeatures(found({})).size).toBe(0));

  it.each(FEATURES)("%s: one line that says what to try", (feature) => {
    const error = missingFeatures(found({ [feature]: { missing: "a, b" } })).get(feature);
    expect(error?.message).toMatch(/^\[(?:host_unsupported|tool_missing|permission_denied)\] \S.*\S: a, b: \S/);
    expect(error?.retryable).toBe(false);
  });

  it("say of ending sockets whether the kernel can't or this process may not", () => {
    const error = (missing: string): string =>
      missingFeatures(found({ "socket-destroy": { missing } })).get("socket-destroy")?.message ?? "";
    expect(error("UDP: EOPNOTSUPP")).toMatch(/^\[host_unsupported\] .*: UDP: EOPNOTSUPP: .*CONFIG_INET_DIAG_DESTROY=y/);
    expect(error("UDP: EPERM")).toMatch(/^\[permission_denied\] .*: UDP: EPERM: .*CAP_NET_ADMIN/);
  });

  it("that could not be tried have the error of what they need", () => {
    const missing = missingFeatures(
      found({ libbpf: { missing: "" }, btf: { untriedFor: "libbpf" }, conntrack: { untriedFor: "btf" }, tc: { untriedFor: "rights" } }),
    );
    expect([...missing.keys()]).toEqual(["libbpf", "btf", "conntrack"]);
    expect(missing.get("conntrack")).toEqual(missing.get("libbpf"));
    expect(missing.get("libbpf")?.message).toBe("[tool_missing] libbpf 1.0 or later is missing: install it: apt-get install libbpf1");
  });
});

describe("missing rights", () => {
  const status = (...bits: readonly bigint[]): string =>
    `CapEff:\t${bits
      .reduce((mask, bit) => mask | (1n << bit), 0n)
      .toString(16)
      .padStart(16, "0")}\n`;
  it.each([
    ["root", status(12n, 21n, 38n, 39n), ""],
    ["SYS_ADMIN stands for BPF and PERFMON", status(12n, 21n), ""],
    ["the three", status(12n, 38n, 39n), ""],
    ["BPF alone", status(39n), "CAP_NET_ADMIN, CAP_PERFMON"],
    ["SYS_ADMIN alone", status(21n), "CAP_NET_ADMIN"],
    ["nobody", status(), "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"],
    ["no Linux", "", "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"],
  ])("%s", (_, text, missing) => expect(missingRights(text)).toBe(missing));
});
