import assert from "node:assert/strict";
import { createCluster } from "../cluster.ts";

/** Connect through IPVS from a client's namespace to a pod's, in a guest. */
const cluster = await createCluster({ nodes: [{ name: "node1", pods: 1 }], clients: 1 });
try {
  const [node, pod, client] = [cluster.node("node1"), cluster.place("pod-1-1"), cluster.place("client1")];
  await cluster.routeTo("10.96.0.2", "node1");
  await node.run("ip", ["address", "add", "10.96.0.2/32", "dev", "lo"]);
  await node.run("ipvsadm", ["-A", "-t", "10.96.0.2:80", "-s", "rr"]);
  await node.run("ipvsadm", ["-a", "-t", "10.96.0.2:80", "-r", `${pod.address("IPv4")}:8080`, "-m"]);
  await pod.agent().serve({ name: "pod", transport: "TCP", port: 8080 });
  const { outcome, server, client: source } = await client.agent().attempt({ address: "10.96.0.2", port: 80, timeoutMs: 20_000 });
  assert.equal(source, client.address("IPv4"));
  process.stdout.write(JSON.stringify({ outcome, server }));
} finally {
  cluster.destroy();
}
