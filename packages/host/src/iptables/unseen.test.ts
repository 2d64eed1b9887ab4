import { ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import type { IptablesProgram } from "./tools.ts";
import { unseenVariants } from "./unseen.ts";
import type { KernelTables } from "./unseen.ts";

const NFT: IptablesProgram = { variant: "nft", version: "1.8.9", suffix: "" };
const LEGACY: IptablesProgram = { variant: "legacy", version: "1.8.9", suffix: "-legacy" };

/** A kernel with chains, as `family table name`, and tables of the legacy variant; undefined: it tells nobody. */
function kernelWith(chains: readonly string[], tables: readonly string[] | undefined): KernelTables {
  return {
    nftChains: () =>
      Promise.resolve(chains.map((text) => text.split(" ")).map(([family = "", table = "", name = ""]) => ({ family, table, name }))),
    legacyTables: () => (tables === undefined ? Promise.reject(new ProxyError("permission_denied", "no")) : Promise.resolve(tables)),
  };
}

const OURS = ["ip nat KUBE-SERVICES", "ip filter KUBE-FORWARD", "ip6 nat KUBE-SERVICES"];
const KUBELETS = ["ip mangle KUBE-KUBELET-CANARY", "ip mangle KUBE-IPTABLES-HINT", "ip nat KUBE-MARK-MASQ", "ip filter KUBE-FIREWALL"];

test.each<readonly [string, readonly IptablesProgram[], ReturnType<typeof kernelWith>, readonly string[]]>([
  ["both programs are here", [NFT, LEGACY], kernelWith(OURS, ["nat"]), []],
  ["none is, and the kernel has nothing", [], kernelWith([], []), ["tool_missing: undefined"]],
  ["none is, and kubelet's chains are no proxy's", [], kernelWith(KUBELETS, []), ["tool_missing: undefined"]],
  [
    "none is, and the kernel has chains",
    [],
    kernelWith([...OURS, ...KUBELETS], []),
    ["host_unsupported: IPv4: 2 KUBE-* chains in filter, nat"],
  ],
  [
    "the legacy one isn't, whose tables tell nothing else",
    [NFT],
    kernelWith(OURS, ["nat", "filter"]),
    ["host_unsupported: IPv4: tables nat, filter"],
  ],
  ["the legacy one isn't, and only root may know", [NFT], kernelWith([], undefined), []],
])("what nobody can look for where %s", async (_name, programs, kernel, expected) => {
  const unseen = await unseenVariants(kernel, "IPv4", programs);
  expect(unseen.map(({ code, object }) => `${code}: ${object}`)).toEqual(expected);
});
