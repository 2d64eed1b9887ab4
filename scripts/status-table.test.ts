import { describe, expect, it } from "vitest";
import { columnOf, statusTable, withTable, type BackendStatus } from "./status-table.ts";

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
const cells = (counts: readonly [probes: number, findings: number][]): BackendStatus["cells"] =>
  counts.map(([probes, findings], rule) => ({ rule: `R-${rule}`, probes, findings }));
const FULL: BackendStatus = {
  backend: "full",
  capabilities: ALL,
  variants: VARIANTS,
  cells: cells([
    [1, 0],
    [2, 0],
  ]),
};
const POOR: BackendStatus = {
  backend: "poor",
  capabilities: { ...ALL, SCTP: "not in the kernel", drop: "it can only refuse" },
  variants: { ...VARIANTS, unallocatedClusterIP: "pass", rejectFromHost: false, affinityScope: "somethingNew" },
  cells: cells([
    [1, 0],
    [2, 1],
    [0, 0],
  ]),
};

describe("the status table", () => {
  it("has a column for each backend, and its choices in words", () => {
    expect(statusTable([FULL, POOR]).split("\n")).toEqual([
      "| backend | `full` | `poor` |",
      "|---|---|---|",
      "| [rules](docs/rules.md) passed | 2 of 2 | 1 of 2, 1 left out |",
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

  it("has the cells of one backend in a column, as the table of that one only has them", () => {
    const page = `text\n\n${statusTable([FULL, POOR])}\n<!-- end -->\n\n| backend | \`poor\` |`;
    expect(columnOf(page, "poor")).toEqual(columnOf(statusTable([POOR]), "poor"));
    expect(columnOf(page, "poor")[3]).toBe("can't do: SCTP: not in the kernel; drop: it can only refuse");
    expect(columnOf(page, "another")).toEqual([]);
  });

  it("takes the place of the one before and of nothing else", () => {
    const page = "a\n<!-- written by npm run status:update -->\nold\nlines\n<!-- end of what is written -->\nz\n";
    const next = withTable(page, "new");
    expect(next).toBe("a\n<!-- written by npm run status:update -->\nnew\n<!-- end of what is written -->\nz\n");
    expect(withTable(next, "new")).toBe(next);
    expect(() => withTable("a page without a place", "new")).toThrow(/lacks/);
  });
});
