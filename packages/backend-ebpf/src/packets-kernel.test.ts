import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { beforeAll, describe, expect, it } from "vitest";
import { BEFORE_LINUX_6_2, BEFORE_LINUX_6_7, PACKET_MISTAKES } from "./test-support/packet-mistakes.ts";
import { PACKETS_EXPECTED, WITHOUT_ROUTES } from "./test-support/packets-expected.ts";
import { OF_KIT, withMistake } from "./test-support/mistakes.ts";
import { COPY_PREFIX } from "./test-support/other-build.ts";
import { onStage } from "./test-support/stage.ts";

const OBJECT = fileURLToPath(new URL("../dist/programs/packets.bpf.o", import.meta.url));
const NEEDS = needs("root", "netns", "bpf", "cgroup2", "ip", "nft", "conntrack", "kernel>=6.7");

const TITLES: Readonly<Record<string, string>> = {
  clusterIP: "a cluster IP is served to clients outside, masqueraded, and to pods as themselves (R-22, R-24)",
  bridges: "and by bridges, whose packets conntrack sees at their ports (net.bridge.bridge-nf-call-iptables)",
  external: "external and load-balancer IPs and node ports are served and masqueraded (R-28); node ports on their addresses alone (R-37)",
  hairpin: "a pod that gets to itself is masqueraded (R-36)",
  sourceRanges: "who is outside of source ranges is counted as that (R-39)",
  onePort: "a client asks two addresses of one endpoint from one port",
  reopened: "a client opens connections from one port again and again",
  established: "a connection stays where it is while its Service changes or goes (R-42)",
  fragments: "datagrams in fragments get there and back",
  icmpErrors: "ICMP errors of endpoints and of the node get to the client, as of the service",
  answersToNodePorts: "an answer to a port of the node that is a node port is an answer",
  hostEndpoint: "endpoints in the node's network namespace see the client's address",
  servedSockets: "what sockets got is not decided on again, where it is another Service's load-balancer IP (R-75)",
  podDevices: "where pods are told by devices, their devices' program takes all for pods' (R-24, R-31)",
  readings: "packets with options, extension headers and in fragments are read; others, and others' marks, are left alone (R-69)",
  origins: "pods are told first, then the host's addresses (R-31, R-32, R-33, R-35)",
  out: "what the host sends to a service's address goes out only where it would be served",
  strays: "a connection that conntrack has forgotten goes on, and its end goes nowhere",
  flips: "new flows are served, and by their own endpoints alone, while lists are replaced",
  crowd: "clients of one namespace take a quarter of what remembers clients, however many they are (R-46)",
  kfuncs: "the kernel's functions make flows of TCP and UDP, and refuse SCTP",
};

describe("packets on a real kernel", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("has a title for every scenario", () => expect(Object.keys(TITLES)).toEqual(Object.keys(PACKETS_EXPECTED)));

  it.each(Object.entries(TITLES).map(([scenario, title]) => [title, scenario]))("%s", async (_, scenario = "") => {
    expect(await onStage("packets flows trials", scenario, OBJECT)).toEqual(PACKETS_EXPECTED[scenario]);
  });

  it("before Linux 6.7 masqueraded clients have the node's primary address", async () => {
    const seen = await withMistake(
      BEFORE_LINUX_6_7,
      (objectFile) => onStage("packets flows trials", BEFORE_LINUX_6_7.scenario, objectFile),
      "packets",
    );
    expect(seen).toEqual(WITHOUT_ROUTES);
  });

  it("before Linux 6.2 packets are served that come by no bridge", async () => {
    const seen = await withMistake(
      BEFORE_LINUX_6_2,
      (objectFile) => onStage("packets flows trials", BEFORE_LINUX_6_2.scenario, objectFile),
      "packets",
    );
    expect(seen).toEqual(PACKETS_EXPECTED[BEFORE_LINUX_6_2.scenario]);
  });
});

describe("deliberate mistakes in the programs of packets", NEEDS, () => {
  it("are there for each program", () => {
    const source = readFileSync(new URL("programs/packets.bpf.c", import.meta.url), "utf8");
    const programs = [...source.matchAll(/^int (turnout_\w+)\(/gm)].map(([, name]) => name);
    expect(programs).toEqual(["turnout_in", "turnout_in_pods", "turnout_out"]);
    expect(programs.filter((name) => !PACKET_MISTAKES.some(({ right }) => right.startsWith(`int ${name}(`)))).toEqual([]);
  });

  it.each(
    someOf(
      PACKET_MISTAKES.filter(({ scenario }) => scenario !== OF_KIT),
      { oneOf: 4 },
    ).map((mistake) => [mistake.what, mistake] as const),
  )("are caught: %s", async (_, mistake) => {
    const seen = await withMistake(mistake, (objectFile) => onStage("packets flows trials", mistake.scenario, objectFile), "packets");
    expect(seen).not.toEqual(PACKETS_EXPECTED[mistake.scenario]);
  });

  it("leave nothing behind", () => {
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith(COPY_PREFIX))).toEqual([]);
    expect(existsSync(OBJECT)).toBe(true);
  });
});
