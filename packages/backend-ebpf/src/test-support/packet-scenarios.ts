// What packets-kernel.test.ts has tried with real packets from a client outside and from a pod: who gets where, and as whom.
import { readFileSync } from "node:fs";
import type { ServiceFixture } from "@turnout/core/testing";
import { at } from "./clients.ts";
import { NODE, POD_ENDPOINTS, run } from "./network.ts";
import { ALL_ADDRESSES, atAll, node, ofBoth, OUTER, PATIENCE_MS, PLAIN } from "./packet-services.ts";

/** By name; each in a network of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  // A Service on its own.
  async clusterIP() {
    const { want, client, pod, counted, leaks } = await node();
    want(ofBoth(PLAIN));
    const questions = atAll(["10.96.0.1", "fd00:96::1"]);
    const answers = { outside: await client.askAll(questions), pod: await pod.askAll(questions) };
    return { ...answers, counted: [counted("plain"), counted("plain-udp", "UDP", "IPv6")], leaks: leaks() };
  },

  // Conntrack sees packets at the ports of bridges. An endpoint's answer to a pod goes by the bridge alone.
  async bridges() {
    const { want, client, pod, leaks, counted } = await node({ isBridged: true });
    if (["iptables", "ip6tables"].some((name) => readFileSync(`/proc/sys/net/bridge/bridge-nf-call-${name}`, "utf8") !== "1\n"))
      throw new Error("bridges of this kernel call netfilter unless they are told otherwise");
    want([...ofBoth({ ...PLAIN, spec: OUTER }), ...ofBoth({ name: "nowhere", number: 3 })]);
    const questions = [...atAll(["10.96.0.1", "fd00:96::1"]), ...atAll([NODE.IPv4, NODE.IPv6], 30_005)];
    const noOne = atAll(["10.96.0.3", "fd00:96::3"]).map((question) => ({ ...question, patienceMs: PATIENCE_MS }));
    return {
      outside: await client.askAll(questions),
      pod: await pod.askAll(questions),
      refused: [...new Set([...(await client.askAll(noOne)), ...(await pod.askAll(noOne))])],
      counted: [counted("plain"), counted("plain-udp", "UDP", "IPv6")],
      leaks: leaks(),
    };
  },

  async external() {
    const { want, client, pod } = await node();
    want(ofBoth({ ...PLAIN, spec: OUTER, loadBalancerIPs: ["198.51.100.2", "fd00:51::2"] }), { addresses: ALL_ADDRESSES });
    const questions = [...atAll(["198.51.100.5", "fd00:51::5", "198.51.100.2", "fd00:51::2"]), ...atAll([NODE.IPv4, NODE.IPv6], 30_005)];
    // Node ports are not on the other address of the node.
    const others = await client.askAll([...atAll([NODE.toPods.IPv4, NODE.toPods.IPv6], 30_005), at("tcp", NODE.IPv4, 80)]);
    return { outside: await client.askAll(questions), pod: await pod.askAll(questions), others };
  },

  async hairpin() {
    const { want, pod } = await node();
    want(ofBoth({ name: "self", number: 9, local: 1, spec: { ...OUTER, externalTrafficPolicy: "Local" } }));
    return pod.askAll([...atAll(["10.96.0.9", "fd00:96::9"]), at("tcp", "198.51.100.5"), at("udp", NODE.IPv6, 30_005)]);
  },

  // Who is outside of source ranges is counted as that.
  async sourceRanges() {
    const { want, client, counted } = await node();
    const spec = { type: "LoadBalancer", loadBalancerSourceRanges: ["203.0.113.0/24"] };
    want([{ name: "ranged", number: 6, local: 1, spec, loadBalancerIPs: ["198.51.100.6"] }]);
    const answer = await client.ask(at("tcp", "198.51.100.6"));
    const { drops, outside = 0 } = counted("ranged");
    return [answer, outside > 0 && drops === 0];
  },

  // An endpoint in the node's own network namespace sees the client's address, although the rule masquerades.
  async hostEndpoint() {
    const { want, client, pod, host } = await node();
    const own = { IPv4: "10.1.1.30", IPv6: "fd00:1:1::30" };
    for (const address of [`${own.IPv4}/32`, `${own.IPv6}/128`]) run("ip", ["addr", "add", address, "dev", "lo"]);
    await host.serve([own.IPv4, own.IPv6]);
    want(ofBoth({ name: "host", number: 3, local: 1, spec: OUTER }), {
      addresses: { IPv4: [NODE.IPv4, own.IPv4], IPv6: [NODE.IPv6, own.IPv6] },
    });
    const questions = [...atAll(["10.96.0.3", "fd00:96::3"]), at("tcp", NODE.IPv4, 30_005)];
    return { outside: await client.askAll(questions), pod: await pod.askAll(questions) };
  },

  // What sockets got from one service is another one's load-balancer IP: only who asks that address itself gets to the other's endpoint.
  async servedSockets() {
    const { want, pod, host } = await node({ hasSockets: true });
    const [address = "", address6 = ""] = POD_ENDPOINTS;
    const other = (protocol: string, local: number): ServiceFixture => {
      const spec = { type: "LoadBalancer", ports: [{ name: "main", port: 8080, protocol }] };
      return { name: `other-${protocol.toLowerCase()}`, number: 2, protocol, local, spec, loadBalancerIPs: [address, address6] };
    };
    const questions = atAll(["10.96.0.1", "fd00:96::1"]);
    want([...ofBoth(PLAIN), other("TCP", 1), other("UDP", 1)]);
    const served = { pod: await pod.askAll(questions), host: await host.askAll(questions) };
    const itself = await pod.askAll([at("tcp", address, 8080), at("udp", address6, 8080)]);
    want([...ofBoth(PLAIN), other("TCP", 0), other("UDP", 0)]);
    return { served, itself, withoutEndpoints: { pod: await pod.askAll(questions), host: await host.askAll(questions) } };
  },

  // Whatever comes by a device of pods is a pod's; there are no pod ranges.
  async podDevices() {
    const { want, client, pod } = await node({ atPods: "turnout_in_pods" });
    want([{ name: "both", number: 5, local: 1, remote: 1, spec: { ...OUTER, externalTrafficPolicy: "Local" } }], {
      settings: { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "pod" } },
    });
    return {
      outside: await client.endpointsOf(at("tcp", NODE.IPv4, 30_005), 12),
      pod: await pod.endpointsOf(at("tcp", NODE.IPv4, 30_005), 24),
      clusterIP: [await client.endpointsOf(at("tcp", "10.96.0.5"), 24), await pod.endpointsOf(at("tcp", "10.96.0.5"), 24)],
    };
  },
};
