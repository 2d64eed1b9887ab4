import { expect, test } from "vitest";
import { reasonsOf, type FoundRules } from "./found-backend.ts";

const OUR_TABLE: FoundRules = { backend: "nft", what: "table ip turnout", by: "turnout" };
const THEIR_TABLE: FoundRules = { backend: "nft", what: "table ip kube-proxy", by: "kube-proxy" };
const MAPS: FoundRules = { backend: "ebpf", what: "9 destinations of services, by eBPF", by: "turnout" };
const SERVERS: FoundRules = { backend: "ipvs", what: "3 virtual servers of ipvs" };
const chains = (variant: string, isLive: boolean): FoundRules => ({
  backend: "iptables",
  what: `30 KUBE-* chains (${variant})`,
  isLive,
  options: { variant },
});
const [LEGACY, NFT, KUBELETS] = [chains("legacy", true), chains("nft", true), chains("nft", false)];

test.each<readonly [name: string, found: readonly FoundRules[], backends: readonly string[]]>([
  ["nothing", [], []],
  ["kube-proxy's table", [THEIR_TABLE], ["nft"]],
  ["chains that packets go by", [LEGACY], ["iptables"]],
  ["chains of kubelet alone", [KUBELETS], []],
  ["our table, which kube-proxy's chains are beside", [LEGACY, OUR_TABLE], ["nft", "iptables"]],
  ["our maps, beside kube-proxy's table", [THEIR_TABLE, MAPS], ["ebpf", "nft"]],
  ["our table and our maps, as a switch that was cut short leaves them", [OUR_TABLE, MAPS], ["nft", "ebpf"]],
  ["chains that may be ours, beside kube-proxy's table", [THEIR_TABLE, NFT], ["iptables", "nft"]],
  ["virtual servers, beside chains that kubelet has as well", [KUBELETS, SERVERS], ["ipvs"]],
  ["both of nft's tables", [THEIR_TABLE, OUR_TABLE], ["nft"]],
])("%s", (_name, found, backends) => {
  expect(reasonsOf(found).map(({ backend }) => backend)).toEqual(backends);
});

test("the variant that is live is adopted, and none of them where both are", () => {
  expect(reasonsOf([KUBELETS, LEGACY])).toEqual([
    { backend: "iptables", because: "30 KUBE-* chains (legacy) in force here", options: { variant: "legacy" } },
  ]);
  expect(reasonsOf([NFT, LEGACY])).toMatchObject([
    { because: "30 KUBE-* chains (nft) and 30 KUBE-* chains (legacy) in force here", options: {} },
  ]);
});
