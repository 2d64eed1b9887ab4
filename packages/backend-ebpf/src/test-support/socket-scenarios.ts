// What sockets-kernel.test.ts has tried with real sockets.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { networkNamespaceCookie } from "@turnout/host/bpf";
import type { ServiceFixture } from "@turnout/core/testing";
import { decodeEndpoint, STRUCTS } from "../bytes/layout.ts";
import { ebpfModule } from "../module.ts";
import { ask, askAll, askByOne, at, endpointsOf, furnish, serve } from "./clients.ts";
import type { How, Question } from "./clients.ts";
import { connectOften } from "./connect-often.ts";
import { place } from "./place.ts";
import { elementsIn, startFlips, startSockets } from "./proxy.ts";
import type { Proxy } from "./proxy.ts";
import { CHILD } from "./stage.ts";
import { closedSockets, udpScenarios } from "./udp-scenarios.ts";

const PLAIN: ServiceFixture = { name: "plain", number: 1, local: 1, remote: 1 };
const UDP: ServiceFixture = { ...PLAIN, number: 2, protocol: "UDP" };
const REFUSED: readonly ServiceFixture[] = [
  { name: "nowhere", number: 3 },
  { name: "nowhere-udp", number: 3, protocol: "UDP", spec: { clusterIP: "10.96.0.3", clusterIPs: ["10.96.0.3", "fd00:96::3"] } },
];
const STICKY: ServiceFixture = {
  name: "sticky",
  number: 7,
  local: 1,
  remote: 1,
  spec: { sessionAffinity: "ClientIP", type: "NodePort", nodePort: 30007 },
};

/** Ask from a pod: another network namespace, with endpoints of its own at the same addresses, and the same cgroup. */
async function askFromPod(questions: readonly Question[]): Promise<readonly string[]> {
  const args = [
    "-n",
    process.execPath,
    "--conditions=@turnout/source",
    "--no-warnings",
    CHILD,
    JSON.stringify(questions),
    "sockets",
    "pod",
  ];
  const { stdout } = await promisify(execFile)("unshare", args, { timeout: 60_000, killSignal: "SIGKILL" });
  return JSON.parse(stdout) as readonly string[];
}

async function proxy(): Promise<Proxy> {
  furnish();
  await serve();
  return startSockets(place.cgroup, place.objectFile);
}

/** By name; each in namespaces of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async pod() {
    furnish();
    await serve();
    return askAll(JSON.parse(place.cgroup) as readonly Question[]);
  },

  // One socket, several services and an endpoint by its own address.
  async oneSocket() {
    const { want } = await proxy();
    want([UDP, { name: "other", number: 8, protocol: "UDP", remote: 1 }]);
    const toPlain = (
      await askByOne(
        "udp4",
        Array.from({ length: 12 }, () => at("sendto", "10.96.0.2")),
      )
    ).map((text) => text.replace(/ says .*/, ""));
    const kept = new Set(
      await askByOne(
        "udp4",
        Array.from({ length: 12 }, () => at("sendto", "10.96.0.2")),
      ),
    );
    const spread = await endpointsOf(at("sendto", "10.96.0.2"), 40);
    const mixed = await askByOne("udp6", [at("sendto", "fd00:96::8"), at("sendto", "fd00:1:1::86", 8080)]);
    const both = await askByOne("udp4", [at("sendto", "10.96.0.8"), at("sendto", "10.1.1.70", 8080), at("sendto", "10.96.0.8")]);
    want([{ name: "other", number: 8, protocol: "UDP", remote: 1 }]);
    const [service, endpoint] = [at("sendto", "10.96.0.8"), at("sendto", "10.1.1.85", 8080)];
    const direct = await askByOne("udp4", [service, endpoint, service]);
    return { direct, shown: [...new Set(toPlain)], kept: kept.size, spread, mixed, both };
  },

  ...udpScenarios(proxy),
  closed: () => closedSockets(proxy),

  // Two services with the same endpoint: whichever was asked last is shown.
  async twoServices() {
    const { want } = await proxy();
    want([{ name: "both", number: 8, protocol: "UDP", remote: 1, spec: { externalIPs: ["198.51.100.8"] } }]);
    const [first, second] = [at("sendto", "10.96.0.8"), at("sendto", "198.51.100.8")];
    return askByOne("udp4", [first, second, first]);
  },

  // Another's address, loopback and nobody's are no node ports'.
  async addresses() {
    const { want } = await proxy();
    want([{ ...PLAIN, remote: 0, spec: { type: "NodePort", nodePort: 30001 } }]);
    return askAll(
      ["172.18.0.1", "::ffff:172.18.0.1", "10.1.1.15", "127.0.0.1", "0.0.0.0", "::"].map((address) => at("tcp", address, 30_001)),
    );
  },

  async refusals() {
    const { want, counted } = await proxy();
    want(REFUSED);
    const addresses = ["10.96.0.3", "fd00:96::3", "::ffff:10.96.0.3"];
    const hows: readonly How[] = ["tcp", "udp", "sendto"];
    const answers = await askAll(hows.flatMap((how) => addresses.map((address) => at(how, address))));
    return { answers, counted: [counted("nowhere"), counted("nowhere-udp", "UDP")] };
  },

  // The host's entry names an endpoint; a pod is another client, with an entry of its own.
  async affinityOfTwo() {
    const { want, map } = await proxy();
    want([STICKY]);
    await ask(at("tcp", "10.96.0.7"));
    await askFromPod([at("tcp", "10.96.0.7"), at("tcp", "172.18.0.1", 30_007)]);
    return (await elementsIn(map("affinity"))).length;
  },

  async optOut() {
    const { want } = await proxy();
    const options = ebpfModule.parseOptions({ counters: true, "opt-out-services": ["shop/plain"] });
    const fixtures = [
      { ...PLAIN, remote: 0 },
      { name: "other", number: 5, local: 1 },
    ];
    const questions = [at("tcp", "10.96.0.1"), at("tcp", "10.96.0.5")];
    want(fixtures, { options });
    const [service, host] = [await askFromPod(questions), await askAll(questions)];
    want(fixtures, { optedOut: [String(networkNamespaceCookie())] });
    const namespace = await askAll(questions);
    want(fixtures);
    return { service, host, namespace, neither: await askAll(questions) };
  },

  // Somebody connects while the endpoints of the service, and of another one, are replaced again and again.
  async flips() {
    const started = await proxy();
    started.want([]);
    const stop = await startFlips(started);
    const { errors } = connectOften("10.96.0.1", 80, 600_000);
    const rounds = await stop();
    const keys = (await elementsIn(started.map("asked_udp"))).map((text) => Buffer.from(text.split(" ")[0] ?? "", "hex"));
    const seen = keys.map((key) => decodeEndpoint(key.subarray(PEER_ENDPOINT, PEER_ENDPOINT + STRUCTS.endpoint.bytes)));
    return { errors, seen: seen.toSorted(), isMany: rounds > 1000 };
  },
};

/** Where `struct peer` has its endpoint. */
const PEER_ENDPOINT = 8;
