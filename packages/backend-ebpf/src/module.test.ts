import { fitRow, abilitiesOf, moduleFaults } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import { FEATURES } from "@turnout/host/bpf";
import type { BpfFeature } from "@turnout/host/bpf";
import { describe, expect, it } from "vitest";
import { familiesOf, HOOKS } from "./hooks.ts";
import { ebpfModule } from "./module.ts";
import { packetSupport } from "./packets/packet-support.ts";
import { lackingWithout, problemsOf } from "./probe.ts";
import { stateOf } from "./test-support/states.ts";

describe("the module", () => {
  it("keeps the contract", () => expect(moduleFaults(ebpfModule)).toEqual([]));

  it("leaves services of SCTP out, and says why", () => {
    const { rows } = stateOf([{ name: "sctp", number: 1, protocol: "SCTP", local: 1 }], "IPv4");
    const [row] = rows.values();
    if (row === undefined) throw new Error("there is a row");
    const { row: fitted, issues } = fitRow(row, abilitiesOf(ebpfModule).capabilities);
    expect([fitted, issues.map(({ what }) => what)]).toEqual([
      undefined,
      ["left out, no SCTP: the kernel's functions that make flows in conntrack refuse it, and no hook of sockets sees it"],
    ]);
  });
});

describe("problems of a host", () => {
  const missing = (...features: readonly BpfFeature[]): { missing: ReadonlyMap<BpfFeature, ProxyError> } => ({
    missing: new Map(features.map((feature) => [feature, new ProxyError("host_unsupported", feature)])),
  });

  it("are what sockets can't do without, and nothing that packets need", () => {
    expect(problemsOf(missing()).length).toBe(0);
    expect(problemsOf(missing(...FEATURES)).map(({ what }) => what)).toEqual([
      "libbpf",
      "rights",
      "bpffs",
      "cgroup2",
      "cgroup-hooks",
      "refusals",
      "links",
      "batches",
    ]);
  });

  it("of packets narrow what can be done, and say what to do", () => {
    const served = packetSupport(missing("tcx", "cgroup2", "socket-destroy"), true);
    expect([served, lackingWithout(served.problems)]).toEqual([{ problems: [], byClsact: true }, {}]);
    const { problems } = packetSupport(missing(...FEATURES), false);
    expect(problems.map(({ what }) => what)).toEqual(["btf", "tc", "conntrack", "nft is not installed"]);
    const why =
      "packets are not served: nft is not installed (install it: apt-get install nftables; in a container, use the image with all backends)";
    expect(lackingWithout(packetSupport(missing(), false).problems)).toEqual({ drop: why, sourceRanges: why });
    expect(abilitiesOf(ebpfModule, { capabilities: lackingWithout(problems) }).capabilities.TCP).toBe(true);
  });

  it("are told once for all that could not be tried for one cause", () => {
    const cause = new ProxyError("permission_denied", "no rights");
    expect(
      problemsOf({
        missing: new Map([
          ["rights", cause],
          ["links", cause],
          ["batches", cause],
        ]),
      }),
    ).toEqual([cause]);
  });
});

it("hooks of IPv6 serve services of both families, those of IPv4 their own", () => {
  expect(Object.entries(HOOKS).map(([name, hook]) => [name.at(-1), familiesOf(hook).length])).toEqual(
    Object.keys(HOOKS).map((name) => [name.at(-1), name.endsWith("4") ? 1 : 2]),
  );
});
