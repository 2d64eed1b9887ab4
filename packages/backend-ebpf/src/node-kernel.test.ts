import { fileURLToPath } from "node:url";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { onStage } from "./test-support/stage.ts";

const OBJECT = fileURLToPath(new URL("../dist/programs/sockets.bpf.o", import.meta.url));
const NEEDS = needs("root", "netns", "bpf", "cgroup2", "ip", "nft", "conntrack", "kernel>=6.7");

/** Both sides of a device carry programs. */
const carrying = (...names: readonly string[]): readonly string[] =>
  names.flatMap((name) => [`${name} egress turnout_out`, `${name} ingress turnout_in`]);

const FOUND = carrying("outside", "pod", "pods");

/** Clients outside get to the one endpoint as the node's address towards pods. */
const SERVED = "198.51.100.5:80 says 10.1.1.10 to 10.1.1.1";
const four = (asked: string): string => `${asked} says 10.1.1.10 to 10.1.1.1`;
const six = (asked: string): string => `${asked} says fd00:1:1::10 to fd00:1:1::1`;
/** At an address of each family, by TCP. */
const ASKED = [four("198.51.100.5:80"), six("[fd00:51::5]:80"), four("198.51.100.2:80"), six("[fd00:51::2]:80")];
const AT_NODE = [four("172.18.0.1:30005"), six("[fd00:18::1]:30005")];
/** A connected socket of UDP shows its peer, too. */
const byUdp = (text: string): string => `${text.split(" ")[0]} ${text}`;

function execute(scenario: string): Promise<unknown> {
  return onStage("node", scenario, OBJECT);
}

describe("a node that the module serves", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("serves external addresses, load-balancer IPs and node ports to clients outside, also while no process runs; the next one writes nothing", async () => {
    const count = (what: string, service: string, family = "IPv4"): string => `${what} shop/${service} ${family}`;
    expect(await execute("serves")).toEqual({
      before: "silence",
      outside: [...ASKED, ...ASKED.map(byUdp), ...AT_NODE, ...AT_NODE.map(byUdp)],
      // Source ranges let 172.18.0.3 in; nobody's endpoints refuse; a pod that hooks of a cgroup don't see keeps its address.
      ranged: ["silence", "198.51.100.6:80 says 10.1.1.60 to 10.1.1.1"],
      refused: "ECONNREFUSED",
      pod: "10.96.0.2:80 says 10.1.1.20 to 10.1.1.90",
      counted: {
        [count("connections", "plain:main/TCP")]: 3,
        [count("connections", "plain-udp:main/UDP")]: 3,
        [count("connections", "ranged:main/TCP")]: 1,
        [count("dropsOutsideRanges", "ranged:main/TCP")]: 1,
        [count("connections", "second:main/TCP")]: 1,
        [count("rejects", "nowhere:main/TCP")]: 1,
        [count("connections", "plain:main/TCP", "IPv6")]: 3,
        [count("connections", "plain-udp:main/UDP", "IPv6")]: 3,
      },
      standalone: SERVED,
      again: 0,
      carriers: FOUND,
      tables: "table inet turnout-ebpf",
    });
  });

  it("leaves a cluster IP that is on a device here to the process that listens there, for its ports alone, as it comes and goes", async () => {
    const served = ["10.1.1.20 fd00:1:1::20", "10.1.1.20"];
    // No address, nothing listens, a cache, the same without endpoints, no cache, once more, and no address again. Other ports and external addresses are the Service's.
    const cached = [["cache", served[1]], "cache", served];
    const phases = [served, served, ...cached, ...cached, served];
    const heard = phases.map((pod) => ({ pod, host: pod }));
    expect(await execute("cache")).toEqual({ packets: phases.map((pod) => ({ pod })), sockets: heard, optedOut: heard });
  });

  it("follows devices that come and go, long before everything is compared, and writes nothing but their programs and address", async () => {
    expect(await execute("follows")).toEqual({
      before: FOUND,
      here: carrying("late"),
      written: 3,
      answer: SERVED,
      isFast: [true, true],
      after: FOUND,
      ofPods: carrying("cali1"),
      reported: [
        { devices: "outside, pod, pods", without: "none" },
        { added: "late", removed: "none" },
        { added: "none", removed: "late" },
        { added: "cali1", removed: "none" },
      ],
      complaints: [],
    });
  });

  it("uses devices that are named alone, and a bridge instead of its port; then those that are found", async () => {
    expect(await execute("named")).toEqual({ seen: carrying("br0", "outside"), found: FOUND });
  });

  it("sees another program's hand at the table of nft and makes it good, long before everything is compared; other tables are nothing to it", async () => {
    const good = [true, SERVED];
    expect(await execute("table")).toEqual({ seen: [good, good, good], others: 0, complaints: 0 });
  });

  it.each(["killedWhileChanging", "killedWhileUpgrading"])(
    "%s: a client outside notices nothing, and it ends as if nothing had been",
    async (name) => {
      expect(await execute(name)).toEqual({ isKilledOften: true, failures: [], isMuch: true, isAsNew: true });
    },
  );

  it("uses filters of clsact where there is no tcx", async () => {
    expect(await execute("clsact")).toEqual({ attached: 6, again: 0, failures: [], links: [], left: [0, false, ""], silent: "silence" });
  });

  it("sees who opens a map by its pin, and mends a value that was replaced so", async () => {
    // After it was pinned, and asked again; after somebody opened it, and asked again; by its id and by the proxy itself; where nothing is.
    expect(await execute("replaced")).toEqual({ opened: [true, false, true, false, false, false], isRepaired: true, complaints: [] });
  });
});
