// What packets-kernel.test.ts has tried with real packets: what becomes of a flow after its first packet, and of packets that are not plain.
import { at } from "./clients.ts";
import type { Question } from "./clients.ts";
import { NODE, run } from "./network.ts";
import { ALL_ADDRESSES, atAll, node, ofBoth, OUTER, PATIENCE_MS, PLAIN } from "./packet-services.ts";

/** By name; each in a network of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  // One socket of a client, and two addresses whose flows end at one endpoint with the client's address: their ports have to differ there.
  async onePort() {
    const { want, client } = await node();
    want([{ ...PLAIN, number: 5, protocol: "UDP", spec: { ...OUTER, externalTrafficPolicy: "Local" } }]);
    const [four, six] = [
      [at("sendto", "198.51.100.5"), at("sendto", NODE.IPv4, 30_005), at("sendto", "198.51.100.5")],
      [at("sendto", "fd00:51::5"), at("sendto", NODE.IPv6, 30_005), at("sendto", "fd00:51::5")],
    ] as const;
    return { four: await client.askByOne("udp4", four), six: await client.askByOne("udp6", six) };
  },

  // A client opens connections from one port, one after another has ended.
  async reopened() {
    const { want, client, leaks } = await node();
    want([PLAIN]);
    const question: Question = { ...at("tcp", "10.96.0.1"), fromPort: 40_001 };
    const answers: string[] = [];
    for (const how of ["reset", "closed", "reset"] as const) {
      answers.push(await client.hold(question));
      await client.end(how);
    }
    return { answers, leaks: leaks() };
  },

  // A connection stays where it is, whatever becomes of its Service.
  async established() {
    const { want, client } = await node();
    want([PLAIN]);
    const said = await client.hold(at("tcp", "10.96.0.1"));
    const echoes: number[] = [];
    for (const next of [[], [{ ...PLAIN, local: 0 }], [{ ...PLAIN, local: 0, remote: 1 }]]) {
      want(next);
      echoes.push(await client.echo(1000));
    }
    return { said, echoes, other: await client.ask(at("tcp", "10.96.0.1")) };
  },

  // Datagrams longer than a packet, each the first of its flow.
  async fragments() {
    const { want, client } = await node();
    want([{ ...PLAIN, number: 5, protocol: "UDP", spec: { ...OUTER, externalTrafficPolicy: "Local" } }]);
    const questions = [at("udp", "10.96.0.5"), at("udp", "fd00:96::5"), at("udp", "198.51.100.5"), at("udp", NODE.IPv6, 30_005)];
    return client.askAll(questions.map((question) => ({ ...question, bytes: 4000 })));
  },

  // ICMP from an endpoint where nobody listens, and from the node itself: packets are too large for its way to the endpoint.
  async icmpErrors() {
    const { want, client } = await node();
    want([...ofBoth({ name: "closed", number: 8, local: 1 }), PLAIN]);
    const refused = await client.askAll(atAll(["10.96.0.8", "fd00:96::8"]).map((question) => ({ ...question, patienceMs: PATIENCE_MS })));
    run("ip", ["route", "change", "10.1.1.0/24", "dev", "pods", "src", NODE.toPods.IPv4, "mtu", "lock", "1300"]);
    run("ip", ["route", "change", "fd00:1:1::/64", "dev", "pods", "src", NODE.toPods.IPv6, "mtu", "lock", "1300"]);
    const echoes: number[] = [];
    for (const address of ["10.96.0.1", "fd00:96::1"]) {
      await client.hold(at("tcp", address));
      echoes.push(await client.echo(100_000));
    }
    return { refused, echoes };
  },

  // The masqueraded flow's port at the node is that of a node port: the answer is an answer all the same.
  async answersToNodePorts() {
    const { want, client } = await node();
    const settings = { nodePortAddresses: ["0.0.0.0/0", "::/0"] };
    want([...ofBoth(PLAIN), ...ofBoth({ name: "other", number: 5, spec: OUTER })], { addresses: ALL_ADDRESSES, settings });
    return client.askAll(atAll(["10.96.0.1", "fd00:96::1"]).map((question) => ({ ...question, fromPort: 30_005 })));
  },
};
