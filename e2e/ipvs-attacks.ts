import assert from "node:assert/strict";
import { STAGE_NODE } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import type { RealStage } from "./conformance-stage.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** A program of the node listens here, on all of its addresses; no Service has this port. */
const OWN_PORT = 9_998;
/** The guest has one CPU, and the host may be busy. */
const TIMEOUT_MS = 30_000;

/**
 * Attack what the node has on all of its addresses, and on 127.0.0.1 (docs/security.md): the cluster IPs on kube-ipvs0 are addresses of the node, too,
 * and a program that listens everywhere isn't reached by them; nothing was set that would let packets for 127.0.0.1 in.
 */
export async function checkAttacks({ site }: RealStage): Promise<void> {
  const node = site.place(STAGE_NODE);
  await node.agent().serve({ name: "own", transport: "TCP", port: OWN_PORT });
  const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
  const attempt = async (address: string): Promise<string> => {
    const { outcome, server } = await site.place("pod-1-3").agent().attempt({ address, port: OWN_PORT, timeoutMs: TIMEOUT_MS });
    return server ?? outcome;
  };
  for (const family of FAMILIES) {
    const { address } = service.target("clusterIP", family);
    const { stdout } = await node.run("ip", ["-json", "address", "show", "dev", "kube-ipvs0"]);
    assert.ok(stdout.includes(`"${address}"`), `kube-ipvs0 has not ${address}: ${stdout}`);
    assert.equal(await attempt(node.address(family)), "own", `the program isn't there (${family})`);
    assert.equal(await attempt(address), "refused", `the program is reached by a cluster IP (${family})`);
  }
  const { stdout: localnet } = await node.run("cat", ["/proc/sys/net/ipv4/conf/all/route_localnet"]);
  assert.equal(localnet.trim(), "0", "packets for 127.0.0.1 are routed");
}

/** `ipvsadm -C` during a change and right after it: the virtual servers that were just written come back with all others, in both families. */
export async function checkCleared({ site }: RealStage): Promise<void> {
  const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
  for (const [pod, when] of [
    ["pod-1-2", "during"],
    ["pod-2-1", "after"],
  ] as const) {
    const change = service.setEndpoints([pod]);
    if (when === "after") await change;
    await site.place(STAGE_NODE).run("ipvsadm", ["-C"]);
    await change;
    for (const family of FAMILIES) {
      const { address, port } = service.target("clusterIP", family);
      const untilMs = Date.now() + TIMEOUT_MS;
      let server: string | undefined;
      while (server === undefined && Date.now() < untilMs)
        server = (await site.place("pod-1-3").agent().attempt({ address, port, timeoutMs: 1_000 })).server;
      assert.equal(server, pod, `${when} a change: the ${family} virtual server is not back after ${TIMEOUT_MS / 1_000} s`);
    }
  }
}
