// What packets-kernel.test.ts has tried with real packets from a client outside and from a pod: who gets where, and as whom.
import { readFileSync } from "node:fs";
import type { ServiceFixture } from "@turnout/core/testing";
import { age } from "./age.ts";
import { at } from "./clients.ts";
import type { Question } from "./clients.ts";
import { CLIENT, NODE, run } from "./network.ts";
import type { Attachment } from "./packet-node.ts";
import { ALL_ADDRESSES, atAll, node, ofBoth, OUTER, PATIENCE_MS, PLAIN } from "./packet-services.ts";

const STICKY: ServiceFixture = {
  name: "sticky",
  number: 7,
  local: 1,
  remote: 1,
  spec: { sessionAffinity: "ClientIP", type: "NodePort", nodePort: 30007 },
};

/** What there is behind the node's programs with a Service on its own. */
async function basics(attachment: Attachment): Promise<unknown> {
  const { want, client, pod, counted, leaks } = await node(attachment);
  want(ofBoth(PLAIN));
  const questions = atAll(["10.96.0.1", "fd00:96::1"]);
  const answers = { outside: await client.askAll(questions), pod: await pod.askAll(questions) };
  return { ...answers, counted: [counted("plain"), counted("plain-udp", "UDP", "IPv6")], leaks: leaks() };
}

/** By name; each in a network of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  clusterIP: () => basics({}),
  clsact: () => basics({ by: "clsact" }),

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

  // The Local policies: who gets to which endpoints, and as whom.
  async local() {
    const { want, client, pod, leaks, counted } = await node();
    want([
      { name: "both", number: 5, local: 1, remote: 1, spec: { ...OUTER, externalTrafficPolicy: "Local" } },
      {
        name: "elsewhere",
        number: 6,
        remote: 1,
        spec: { ...OUTER, nodePort: 30006, externalTrafficPolicy: "Local", externalIPs: ["198.51.100.6"] },
      },
      { name: "internal", number: 2, local: 1, remote: 1, spec: { internalTrafficPolicy: "Local" } },
      { name: "nothing", number: 7, remote: 1, spec: { internalTrafficPolicy: "Local" } },
    ]);
    return {
      outside: [await client.endpointsOf(at("tcp", NODE.IPv4, 30_005), 12), await client.endpointsOf(at("tcp", "fd00:51::5"), 12)],
      pod: [await pod.endpointsOf(at("tcp", NODE.IPv4, 30_005), 24), await pod.endpointsOf(at("tcp", "fd00:51::5"), 24)],
      elsewhere: [await client.ask(at("tcp", "198.51.100.6")), await pod.ask(at("tcp", "198.51.100.6"))],
      internal: [await client.endpointsOf(at("tcp", "10.96.0.2"), 12), await pod.endpointsOf(at("tcp", "10.96.0.2"), 12)],
      nothing: [await client.ask(at("tcp", "10.96.0.7")), await pod.ask(at("tcp", "fd00:96::7"))],
      counted: [counted("elsewhere"), counted("nothing"), counted("nothing", "TCP", "IPv6")].map(({ drops = 0 }) => drops > 0),
      leaks: leaks(),
    };
  },

  async hairpin() {
    const { want, pod } = await node();
    want(ofBoth({ name: "self", number: 9, local: 1, spec: { ...OUTER, externalTrafficPolicy: "Local" } }));
    return pod.askAll([...atAll(["10.96.0.9", "fd00:96::9"]), at("tcp", "198.51.100.5"), at("udp", NODE.IPv6, 30_005)]);
  },

  async refusals() {
    const { want, client, pod, counted, leaks } = await node();
    want(ofBoth({ name: "nowhere", number: 3, spec: OUTER }));
    const questions = [...atAll(["10.96.0.3", "fd00:96::3"]), ...atAll([NODE.IPv4, NODE.IPv6], 30_005)].map((question) => ({
      ...question,
      patienceMs: PATIENCE_MS,
    }));
    const answers = [await client.askAll(questions), await pod.askAll(questions)];
    const counts = [counted("nowhere"), counted("nowhere-udp", "UDP", "IPv6")].map(({ rejects = 0 }) => rejects);
    return { answers: [...new Set(answers.flat())], isCounted: counts.every((count) => count >= 4), leaks: leaks() };
  },

  // Each client by its own address, pods too.
  async sourceRanges() {
    const { want, client, pod, leaks, counted } = await node();
    const ranged = (ranges: readonly string[], local: number): ServiceFixture => ({
      name: "ranged",
      number: 6,
      local,
      spec: { type: "LoadBalancer", loadBalancerSourceRanges: ranges, externalIPs: ["198.51.100.5"] },
      loadBalancerIPs: ["198.51.100.6", "fd00:51::6"],
    });
    const questions = [at("tcp", "198.51.100.6"), at("tcp", "fd00:51::6")];
    const far = [
      { ...at("tcp", "198.51.100.6"), from: CLIENT.far.IPv4 },
      { ...at("tcp", "fd00:51::6"), from: CLIENT.far.IPv6 },
    ];
    want([ranged(["203.0.113.0/30", "203.0.113.4/30", "fd00:113::/64"], 1)]);
    const first = { far: await client.askAll(far), near: await client.askAll(questions), pod: await pod.askAll(questions) };
    const open = await client.ask(at("tcp", "198.51.100.5"));
    const { drops, outside = 0 } = counted("ranged");
    want([ranged(["10.1.1.90/32", "fd00:1:1::90/128", "203.0.113.4/32"], 1)]);
    const second = { far: await client.askAll(far), pod: await pod.askAll(questions) };
    want([ranged(["203.0.113.0/24"], 0)]);
    const empty = await client.askAll([{ ...(far[0] as Question), patienceMs: PATIENCE_MS }, questions[0] as Question]);
    return { first, open, isCounted: outside > 0 && drops === 0, second, empty, leaks: leaks() };
  },

  async affinity() {
    const { want, client, map } = await node();
    want([STICKY]);
    const question = at("tcp", "10.96.0.7");
    const first = await client.endpointsOf(question, 12);
    const byNodePort = await client.endpointsOf(at("tcp", NODE.IPv4, 30_007), 12);
    const aged = new Set<string>();
    for (let times = 0; times < 40; times += 1) {
      await age(map("affinity"), 10_801);
      for (const endpoint of await client.endpointsOf(question, 1)) aged.add(endpoint);
    }
    const [kept] = await client.endpointsOf(question, 1);
    // Of those within the timeout each connection begins the time anew.
    const young = new Set<string>();
    let isRenewed = true;
    for (let times = 0; times < 12; times += 1) {
      isRenewed = (await age(map("affinity"), 10_000)) && isRenewed;
      for (const endpoint of await client.endpointsOf(question, 1)) young.add(endpoint);
    }
    // The one it has goes, and comes back.
    const isLocal = kept?.startsWith("10.1.1.70") === true;
    want([{ ...STICKY, local: isLocal ? 0 : 1, remote: isLocal ? 1 : 0 }]);
    const moved = await client.endpointsOf(question, 12);
    want([STICKY]);
    const stays = await client.endpointsOf(question, 12);
    // Another address is another client.
    await client.ask({ ...question, from: CLIENT.second });
    let entries = 0;
    for await (const { count } of map("affinity").read()) entries += count;
    return {
      isSame: new Set([...first, ...byNodePort]).size === 1,
      aged: aged.size,
      young: isRenewed && young.size === 1 && young.has(kept ?? ""),
      moved: moved.length === 1 && moved[0] !== kept,
      stays: stays.join() === moved.join(),
      entries,
    };
  },

  async choice() {
    const { want, client } = await node();
    want(ofBoth({ ...PLAIN, remote: 2 }));
    return { four: await client.endpointsOf(at("udp", "10.96.0.1"), 60), six: await client.endpointsOf(at("tcp", "fd00:96::1"), 60) };
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
