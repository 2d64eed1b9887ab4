import { expect, it } from "vitest";
import { parse } from "yaml";
import { nodeFiles } from "./node-files.ts";

const FILES = nodeFiles({
  name: "node1",
  addresses: ["fd00:18::1", "172.18.0.1"],
  podCIDRs: ["fd00:1:1::/64", "10.1.1.0/24"],
  ca: "/run/ca.crt",
  dns: "fd00:96::a",
  pause: "registry.k8s.io/pause:3.10.2",
});

it("pods get addresses and a way out in the order of the cluster's families, and nothing is masqueraded", () => {
  const { plugins } = JSON.parse(FILES["cni.conflist"] ?? "") as { plugins: readonly object[] };
  expect(plugins[0]).toMatchObject({
    ipMasq: false,
    ipam: { ranges: [[{ subnet: "fd00:1:1::/64" }], [{ subnet: "10.1.1.0/24" }]], routes: [{ dst: "::/0" }, { dst: "0.0.0.0/0" }] },
  });
});

it("the kubelet knows DNS and whom to trust, and lets nobody else in", () => {
  expect(parse(FILES["kubelet.yaml"] ?? "")).toMatchObject({
    clusterDNS: ["fd00:96::a"],
    authentication: { anonymous: { enabled: false }, x509: { clientCAFile: "/run/ca.crt" } },
  });
});

it("the node knows its own name, and containerd its image of sandboxes", () => {
  expect(FILES["hosts"]).toContain("172.18.0.1 node1\n");
  expect(FILES["containerd.toml"]).toContain('sandbox_image = "registry.k8s.io/pause:3.10.2"');
});
