import { RANGES } from "./address-plan.ts";
import type { Cluster } from "./cluster.ts";

/** A routing table of its own, of the fabric and of nodes, for what must not go the short way. */
export const DETOUR_TABLE = "97";

/**
 * Send whatever clients, the second node and its pods send by way of the first node, so that its proxy, the only one, sees both directions
 * of all that the stage's scenarios send.
 *
 * Without that an answer could go round the node that translated the question: from a pod of the second node to another, from there to
 * a client whose source was kept.
 */
export async function routeByFirstNode(cluster: Cluster): Promise<void> {
  const [first, ...others] = cluster.nodes;
  if (first === undefined) throw new Error("the stage needs a node");
  for (const family of cluster.families) {
    const ip = family === "IPv4" ? "-4" : "-6";
    const detour = [ip, "route", "add", "default", "via", first.address(family), "table", DETOUR_TABLE];
    const rule = (...what: readonly string[]): string[] => [ip, "rule", "add", ...what, "lookup", DETOUR_TABLE];
    await cluster.fabric.run("ip", detour);
    // What the first node sends to an external address that nobody has must not come back to it: it would meet the proxy a second time, as
    // a packet from outside. Over IPv4 the kernel drops such packets for their source anyway.
    await cluster.fabric.run("ip", [ip, "rule", "add", "from", first.address(family), "to", RANGES.external[family], "blackhole"]);
    for (const client of cluster.clients) await cluster.fabric.run("ip", rule("iif", client.name));
    for (const node of others) {
      await node.run("ip", detour);
      await node.run("ip", [ip, "route", "add", RANGES.services[family], "via", first.address(family)]);
      // `iif lo` is what the node itself sends; what comes back from the first node for its pods must go the direct way.
      for (const range of [RANGES.pods[family], RANGES.clients[family]]) await node.run("ip", rule("iif", "lo", "to", range));
      for (const [index] of node.pods.entries()) await node.run("ip", rule("iif", `veth${index + 1}`));
    }
  }
}
