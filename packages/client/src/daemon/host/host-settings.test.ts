import { describe, expect, test } from "vitest";
import { differs, wantedSettings, type HostSettings } from "./host-settings.ts";

const LEFT: HostSettings["conntrack"] = {
  maxPerCore: 0,
  min: 131_072,
  tcpEstablishedTimeoutMs: 0,
  tcpCloseWaitTimeoutMs: 0,
  tcpBeLiberal: false,
  udpTimeoutMs: 0,
  udpStreamTimeoutMs: 0,
};

function wanted(conntrack: Partial<HostSettings["conntrack"]>, cores: number = 4): Readonly<Record<string, number>> {
  const settings = wantedSettings({ conntrack: { ...LEFT, ...conntrack }, oomScoreAdj: -999 }, cores);
  return Object.fromEntries(
    settings
      .filter(({ name }) => name !== "oom_score_adj")
      .map(({ name, value }) => [name.replace("net.netfilter.nf_conntrack_", ""), value]),
  );
}

describe("what is set, as kube-proxy has it", () => {
  test.each([
    ["nothing that isn't asked for, whatever min says", {}, 4, {}],
    ["the table by cores", { maxPerCore: 32_768 }, 8, { max: 262_144, "nf_conntrack.hashsize": 65_536 }],
    ["the table at least", { maxPerCore: 32_768 }, 2, { max: 131_072, "nf_conntrack.hashsize": 32_768 }],
    ["the table of many cores, bounded", { maxPerCore: 32_768, min: 0 }, 512, { max: 1_048_576, "nf_conntrack.hashsize": 262_144 }],
    [
      "a minimum beyond the bound, where cores ask for less",
      { maxPerCore: 1, min: 2_000_000 },
      4,
      { max: 2_000_000, "nf_conntrack.hashsize": 500_000 },
    ],
    ["a hash size is a whole number", { maxPerCore: 1, min: 7 }, 1, { max: 7, "nf_conntrack.hashsize": 1 }],
    ["established TCP", { tcpEstablishedTimeoutMs: 86_400_000 }, 4, { tcp_timeout_established: 86_400 }],
    ["CLOSE_WAIT", { tcpCloseWaitTimeoutMs: 3_600_000 }, 4, { tcp_timeout_close_wait: 3_600 }],
    ["whole seconds", { tcpCloseWaitTimeoutMs: 1_900 }, 4, { tcp_timeout_close_wait: 1 }],
    ["liberal TCP", { tcpBeLiberal: true }, 4, { tcp_be_liberal: 1 }],
    ["UDP", { udpTimeoutMs: 5_000, udpStreamTimeoutMs: 6_000 }, 4, { udp_timeout: 5, udp_timeout_stream: 6 }],
  ])("%s", (_name, conntrack, cores, expected) => expect(wanted(conntrack, cores)).toEqual(expected));

  test("a table that is larger stays, as with kube-proxy 1.37", () => {
    const settings = wantedSettings({ conntrack: { ...LEFT, maxPerCore: 1 }, oomScoreAdj: 17 }, 1);
    expect(settings.filter(({ isLeast }) => isLeast === true).map(({ name }) => name)).toEqual([
      "net.netfilter.nf_conntrack_max",
      "nf_conntrack.hashsize",
    ]);
  });

  test("the process's own setting comes last", () => {
    const settings = wantedSettings({ conntrack: { ...LEFT, maxPerCore: 1 }, oomScoreAdj: 17 }, 1);
    expect(settings.at(-1)).toEqual({ name: "oom_score_adj", path: "/proc/self/oom_score_adj", value: 17 });
  });
});

describe("what has to be written", () => {
  const hashSize = { name: "h", path: "/h", value: 100, isLeast: true } as const;
  const timeout = { name: "t", path: "/t", value: 100 };
  test.each([
    ["a shorter timeout", timeout, "99", true],
    ["a longer timeout, too, as kube-proxy does", timeout, "101", true],
    ["the same", timeout, "100\n", false],
    ["a smaller hash table", hashSize, "99", true],
    ["no larger hash table", hashSize, "101", false],
    ["what is no number", hashSize, "(null)", true],
  ])("%s", (_name, setting, text, expected) => expect(differs(setting, text)).toBe(expected));
});
