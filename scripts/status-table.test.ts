import { describe, expect, it } from "vitest";
import { statusTable, withTable, type BackendStatus } from "./status-table.ts";

const VARIANTS = {
  undefinedClusterIPPort: "reject",
  undefinedExternalPort: "pass",
  unallocatedClusterIP: "drop",
  nodePortRejectScope: "nodePortAddresses",
  rejectFromHost: true,
  blockedWithoutEndpoints: "drop",
  affinityScope: "row",
  rowChanges: "atOnce",
  localClients: "packets",
  affinityBy: "memory",
  nodePortScope: "settings",
  nodePortsOnLoopback: "never",
};
const ALL = Object.fromEntries(["IPv4", "IPv6", "TCP", "UDP", "SCTP", "drop"].map((name) => [name, true as const]));
const FULL: BackendStatus = { backend: "full", capabilities: ALL, variants: VARIANTS, rules: { passed: 57, failed: 0, leftOut: 0 } };
const POOR: BackendStatus = {
  backend: "poor",
  capabilities: { ...ALL, SCTP: "not in the kernel", drop: "it can only refuse" },
  variants: { ...VARIANTS, unallocatedClusterIP: "pass", rejectFromHost: false, affinityScope: "somethingNew" },
  rules: { passed: 50, failed: 2, leftOut: 5 },
};

describe("the status table", () => {
  it("has a column for each backend, and its choices in words", () => {
    expect(statusTable([FULL, POOR]).split("\n")).toEqual([
      "| backend | `full` | `poor` |",
      "|---|---|---|",
      "| [rules](docs/rules.md) passed | 57 of 57 | 50 of 52, 5 left out |",
      "| families | IPv4, IPv6 | IPv4, IPv6 |",
      "| protocols | TCP, UDP, SCTP | TCP, UDP |",
      "| can't do | nothing | SCTP: not in the kernel; drop: it can only refuse |",
      "| a port nobody defined on a cluster IP | is refused | is refused |",
      "| a port nobody defined on an external or load-balancer IP | is left alone | is left alone |",
      "| an address of the service range nobody has | is dropped | is left alone |",
      "| a node port without endpoints is refused | on node-port addresses | on node-port addresses |",
      "| refusals concern the host's own packets too | yes | no |",
      "| a source outside the ranges, no endpoints | is dropped | is dropped |",
      "| node ports on 127.0.0.1 | don't answer | don't answer |",
      "| one affinity entry is for | one service port | somethingNew |",
      "| affinity is made of | memory with a timeout | memory with a timeout |",
      "| node ports answer on | the addresses chosen | the addresses chosen |",
      "| servers and masquerading that both change | change at once | change at once |",
      "| clients on the node itself are served at | their packets | their packets |",
    ]);
  });

  it("takes the place of the one before and of nothing else", () => {
    const page = "a\n<!-- written by npm run status:update -->\nold\nlines\n<!-- end of what is written -->\nz\n";
    const next = withTable(page, "new");
    expect(next).toBe("a\n<!-- written by npm run status:update -->\nnew\n<!-- end of what is written -->\nz\n");
    expect(withTable(next, "new")).toBe(next);
    expect(() => withTable("a page without a place", "new")).toThrow(/lacks/);
  });
});
