import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { onStage } from "./test-support/stage.ts";

const OBJECT = fileURLToPath(new URL("../dist/programs/sockets.bpf.o", import.meta.url));

const HOOK_NAMES = ["close", "conn4", "conn6", "peer4", "peer6", "recv4", "recv6", "send4", "send6"].map((name) => `turnout_${name}`);
const MAP_NAMES = [
  "affinity",
  "asked_tcp",
  "asked_udp",
  "chosen_udp",
  "counters",
  "endpoints",
  "node_addresses",
  "opted_out",
  "pod_ranges",
  "primaries",
  "services",
  "settings",
  "source_ranges",
];

/** By their paths. The one device that leads out is the third. */
const PINNED: readonly string[] = [
  ...["3-egress", "3-ingress", ...HOOK_NAMES].map((name) => `link links/${name}`),
  ...MAP_NAMES.map((name) => `map v2-X/${name}`),
  ...["turnout_in", "turnout_in_pods", "turnout_out"].map((name) => `program v2-X/packets-X/${name}`),
  ...HOOK_NAMES.map((name) => `program v2-X/sockets-X/${name}`),
].toSorted((a, b) => (a.replace(/^\w+ /, "") < b.replace(/^\w+ /, "") ? -1 : 1));

const ANSWERED = ["10.96.0.1:80 says 10.1.1.10", "[fd00:96::1]:80 says fd00:1:1::10", "[::ffff:10.96.0.1]:80 says 10.1.1.10"];
const SILENCE = "silence";
const FULL = "[limit_reached] a BPF map is full (E2BIG): map";

function execute(scenario: string, before: readonly string[] = []): Promise<unknown> {
  return onStage("module", scenario, OBJECT, before);
}

/** What another hand did, and how many objects have to be written for it. */
const HARM: Readonly<Record<string, number>> = {
  serviceGone: 1,
  serviceChanged: 1,
  strayService: 1,
  placeGone: 1,
  placeMore: 1,
  placeFar: 1,
  listOfNone: 1,
  settings: 1,
  nodeAddress: 1,
  nodeAddressFlags: 1,
  podRange: 1,
  podRangeGone: 1,
  primary: 1,
  unusedRange: 1,
  optOut: 1,
  unusedCounter: 1,
  linkDetached: 1,
  pinGone: 1,
  deviceLinkDetached: 1,
  devicePinGone: 1,
  tableGone: 1,
  chainFlushed: 1,
  chainGone: 1,
  chainMore: 1,
  packetProgramsGone: 2,
  programsGone: 9,
  allMapsGone: 100,
  servingGone: 1,
  everythingGone: 102,
};

describe("the module on a real kernel", needs("root", "netns", "bpf", "cgroup2", "ip", "nft"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("adopts what is pinned, writes nothing then, and later only what changed; sockets are served while no process runs", async () => {
    expect(await execute("adopt")).toEqual({
      isMuch: true,
      again: 0,
      changed: true,
      standalone: ANSWERED,
      errors: [],
      pinned: PINNED,
      // Whoever may write there can send traffic elsewhere.
      modes: ["folder 700", "pin 600"],
    });
  });

  it("mends what another hand did to maps, links and pins, and writes nothing but that", async () => {
    const found = Object.fromEntries(Object.entries(HARM).map(([what, written]) => [what, [written, 0, true, true, PINNED.length]]));
    expect(await execute("repairs")).toEqual({ found, errors: [] });
  });

  it("goes over to maps of other sizes, and to another build, under load: no connection fails, and sockets and clients are remembered", async () => {
    expect(await execute("upgrade")).toEqual({
      failures: [],
      isMuch: true,
      isShownRarely: true,
      same: [true, true],
      sizes: [2048, 65_536],
      sticky: true,
      peers: ["10.96.0.1:80", "10.96.0.2:80"],
      asked: true,
      // Nine links, and the folder of the programs before.
      rebuilt: 10,
      links: 11,
      problems: [],
    });
  });

  it("attaches a program again as soon as the kernel has let go of a link whose pin somebody removed", async () => {
    expect(await execute("linkThatStays")).toEqual({ failures: [], refused: [], complaints: [], isPinned: true });
  });

  it("keeps the programs before when the kernel refuses those of this build, says why in a line, and serves what changes", async () => {
    const refusal = "[host_unsupported] this kernel's verifier refuses a BPF program (EACCES): turnout_conn4 of sockets.bpf.o: ";
    const words = `${refusal}R0 invalid mem access 'map_value_or_null' (at "*chosen = *one;", `;
    const why = (hint: string): unknown => expect.toSatisfy((text: string) => text.includes(words) && text.endsWith(`: ${hint}`));
    // From the first instruction to the number of those it looked at.
    const log: unknown = expect.stringMatching(/^# \[host_unsupported\] .*\n(?:.*\n)*0: \([0-9a-f]{2}\) (?:.*\n)*processed \d+ insns /);
    const both = ["10.1.1.10", "10.1.1.11"];
    expect(await execute("refusedBuild")).toEqual({
      seen: both,
      refused: 9,
      isSame: true,
      problems: [why("the verifier's whole log is in /mnt/verifier-log")],
      written: 0,
      later: [both, MAP_NAMES.length],
      failing: why("option verifier-log=/path/of/a/file keeps the verifier's whole log"),
      log,
    });
  });

  it("does not serve as long as something is not in its place, says what, also by the next process, and once it has served goes on", async () => {
    const why = (what: string): unknown => expect.stringContaining(`this node is not served yet, a former proxy's rules stay: ${what}`);
    const marks = ["serving-IPv4", "serving-IPv6"];
    expect(await execute("notServedYet")).toEqual({
      seen: {
        hooks: [1, why("link turnout_send4: [tool_failed] no (EINVAL)"), [], marks],
        programs: [1, why("device 3-ingress and 1 more: [tool_failed] no (EINVAL)"), [], marks],
        table: [1, why("table inet turnout-ebpf: ["), [], marks],
        devices: [1, why("device 3-ingress and 1 more: [tool_failed] no (EINVAL)"), [], marks],
      },
      later: [marks, [" [tool_failed] no (EINVAL)"], 1],
    });
  });

  it("removes what other layouts left, and nothing that isn't ours", async () => {
    expect(await execute("external")).toEqual({ folders: ["links", "somebody", "v2-X"], answers: ANSWERED.slice(0, 1), problems: [] });
  });

  it("goes over to another cgroup, and to one that was made again", async () => {
    const served = ANSWERED.slice(0, 2);
    expect(await execute("otherCgroup")).toEqual({
      before: served,
      links: 9,
      outside: [SILENCE, SILENCE],
      inside: served,
      again: served,
      complaints: [],
    });
  });

  it("waits with hooks that ask in both families until both are in the new maps", async () => {
    const late = ["3-egress", "3-ingress", "turnout_close", "turnout_conn6", "turnout_peer6", "turnout_recv6", "turnout_send6"].map(
      (name) => ` [timed_out] the services of IPv6 are not in the new maps yet: ${name}: the old ones stay in force; it is tried again`,
    );
    const answers = [...ANSWERED, "10.96.0.2:80 10.96.0.2:80 says 10.1.1.20"];
    expect(await execute("oneFamilyLate")).toEqual({ half: [answers, 2, late], whole: [answers, 1, PINNED.length] });
  });

  it("has what does not fit fail by itself, says which option to raise, and leaves nothing of it in the maps", async () => {
    const [hint, services] = ["raise the option max-endpoints", "raise the option max-services"];
    expect(await execute("full")).toEqual({
      first: [SILENCE, "10.1.1.10", "10.1.1.11", 2],
      failures: [
        `shop/large:main/TCP ${FULL} endpoints (hash, 8 entries): ${hint}`,
        expect.stringMatching(
          /^shop\/large:main\/TCP \[limit_reached\] a service's endpoints or source ranges could not be written: list [0-9a-f]{16}$/,
        ),
      ],
      second: ["10.1.1.10", "10.1.1.11", 2],
      third: ["10.1.1.10", "10.1.1.11", 2],
      fourth: ["10.1.1.10", "10.1.1.11", "10.1.1.15", 3],
      services: 3,
      servicesFailed: [
        `shop/more-6:main/TCP ${FULL} counters (per-cpu-hash, 3 entries): ${services}`,
        `shop/more-6:main/TCP ${FULL} services (hash, 3 entries): ${services}`,
      ],
      answers: ["10.96.0.2:80 says 10.1.1.20", "10.96.0.5:80 says 10.1.1.50", SILENCE],
      refused: [],
    });
  });

  it("ends UDP sockets that are connected to an endpoint which is gone, here and in pods, and no others, however many of TCP ask after them", async () => {
    expect(await execute("stuck")).toEqual({
      forgotten: [6, 2],
      here: ["ECONNABORTED", "ECONNABORTED", "ECONNABORTED", "ECONNABORTED", "10.1.1.85", "10.1.1.20", "ECONNABORTED"],
      pod: ["ECONNABORTED", "10.1.1.85"],
      late: "ECONNABORTED",
      problems: [],
    });
  });

  it("tells what programs counted of each row, also after a restart, and what maps take", async () => {
    const row = (what: string, service: string, protocol: string, family = "IPv4"): string =>
      `${what} shop/${service}:main/${protocol} ${family}`;
    // A trie without elements takes no memory.
    expect(await execute("metrics")).toEqual({
      counted: {
        [row("connections", "plain", "TCP")]: 2,
        [row("connections", "plain", "TCP", "IPv6")]: 1,
        [row("datagrams", "udp", "UDP")]: 1,
        [row("rejects", "nowhere", "TCP")]: 1,
        [row("dropsWithoutLocal", "elsewhere", "TCP")]: 1,
      },
      isKept: true,
      gone: [],
      maps: Object.entries({
        services: 1024,
        endpoints: 4096,
        source_ranges: 1024,
        node_addresses: 1024,
        pod_ranges: 64,
        primaries: 2,
        counters: 1024,
        opted_out: 1024,
        settings: 1,
        affinity: 1024,
        asked_tcp: 1024,
        asked_udp: 1024,
        chosen_udp: 1024,
      }).flatMap(([map, entries]) => [
        `turnout_ebpf_map_memory_bytes ${map} ${map !== "source_ranges"}`,
        `turnout_ebpf_map_max_entries ${map} ${entries}`,
      ]),
    });
  });

  it("follows network namespaces that are opted out", async () => {
    expect(await execute("facts")).toEqual({ before: 0, there: 1, after: 0 });
  });

  it("gives one family after the other to another backend, and everything with the last", async () => {
    const what = "1 destinations of services, by eBPF";
    expect(await execute("leftovers")).toEqual([
      ["IPv4", 0, what, [SILENCE, ANSWERED[1], SILENCE], true],
      0,
      ["IPv6", 0, what, [SILENCE, SILENCE, SILENCE], false],
      0,
    ]);
  });

  it("says what is missing on this host, and leaves nothing behind", async () => {
    expect(await execute("probe")).toEqual({
      without: ["[host_unsupported] no bpffs is mounted: mount -t bpf bpf /sys/fs/bpf; in a container, mount the host's there"],
      withAll: [],
      noCgroup: ["[not_found] there is no such cgroup: /sys/fs/cgroup/none: option cgroup is the path of its folder"],
    });
  });

  it("says which rights are missing in one line", needs("setpriv"), async () => {
    const dropped = "-net_admin,-bpf,-perfmon,-sys_admin";
    expect(await execute("probeWithoutRights", ["setpriv", `--bounding-set=${dropped}`, `--inh-caps=${dropped}`])).toEqual([
      expect.stringMatching(
        /^\[permission_denied\] this process may not load BPF programs: without CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: run as root/,
      ),
      expect.stringMatching(/no bpffs is mounted/),
    ]);
  });
});

describe("a process that is killed while it applies", needs("root", "netns", "bpf", "cgroup2", "ip", "nft"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("for the first time: the next ones end where one that lived would", async () => {
    expect(await execute("killedAtFirst")).toEqual({ isKilledOften: true, isAsNew: true });
  });

  it("a change, with clients at work: none of them notices", async () => {
    expect(await execute("killedWhileChanging")).toEqual({ isKilledOften: true, failures: [], shown: 0, isAsNew: true });
  });

  it("an upgrade, with clients at work: no connection or datagram is lost", async () => {
    expect(await execute("killedWhileUpgrading")).toEqual({ isKilledOften: true, failures: [], isAsNew: true });
  });

  it("leaves no cgroup behind", () => {
    const root = "/sys/fs/cgroup/unified";
    expect(existsSync(root) ? readdirSync(root).filter((name) => name.startsWith(`turnout-ebpf-test-${process.pid}-`)) : []).toEqual([]);
  });
});
