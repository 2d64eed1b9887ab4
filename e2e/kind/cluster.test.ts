import { expect, it } from "vitest";
import { parse } from "yaml";
import { configOf } from "./cluster.ts";

it("kind makes no kube-proxy for Turnout, and one in the control's mode", () => {
  expect(parse(configOf({ ipFamily: "ipv6", kubeProxyMode: "none" }))).toMatchObject({
    kind: "Cluster",
    networking: { ipFamily: "ipv6", kubeProxyMode: "none" },
    nodes: [{ role: "control-plane" }, { role: "worker" }, { role: "worker" }],
  });
  expect(parse(configOf({ ipFamily: "dual", kubeProxyMode: "nftables" }))).toMatchObject({ networking: { kubeProxyMode: "nftables" } });
});
