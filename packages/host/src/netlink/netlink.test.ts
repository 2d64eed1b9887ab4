import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";

const child = fileURLToPath(new URL("../test-support/netlink-child.ts", import.meta.url));
const flags = ["--conditions=@turnout/source", "--no-warnings"];

/** Play a scenario in a fresh network namespace, which goes with its process. */
async function inNamespace(scenario: string, before: readonly string[] = []): Promise<unknown> {
  const args = ["-n", ...before, process.execPath, ...flags, child, scenario];
  const { stdout } = await promisify(execFile)("unshare", args, { timeout: 100_000, killSignal: "SIGKILL" });
  return JSON.parse(stdout);
}

describe("named counters of a real kernel", needs("root", "netns", "iptables"), () => {
  it("are made once, count, and stay while a rule names them", async () => {
    expect(await inNamespace("counters")).toEqual({ before: "none", fresh: 0, counted: 3, used: 3, after: "none" });
  });
});

describe("elements in a real kernel", needs("root", "netns", "nft"), () => {
  it("are written as nft writes them, as a whole or not at all, and not told to who wrote them", async () => {
    expect(await inNamespace("writes")).toEqual({
      said: {
        mixed: "done",
        many: "done",
        again: "done",
        otherwise: "already_exists add element ip t services",
        missing: "not_found delete element ip t services",
        nowhere: "not_found add element ip none services",
        moved: "done",
      },
      // One that has nothing to do is none.
      commits: 3,
      reported: "nft",
      listed: [
        ["10.96.0.1 . sctp . 65535 : drop", '10.96.0.1 . tcp . 80 comment "shop/cart:http" : goto c'],
        ["10.96.0.1 . 80 . 4000000000 : 10.1.0.5 . 8080", "10.96.0.2 . 80 . 0 : 10.9.9.9 . 1"],
        ["fd00:96::1 . udp . 53 : goto c"],
      ],
    });
  });
});

describe("conntrack entries of a real kernel", needs("root", "netns", "conntrack"), () => {
  it("deletes the IPv4 UDP flows that are not answered by a kept endpoint, in their zone", async () => {
    expect(await inNamespace("flowsIPv4")).toEqual({
      deleted: 4,
      left: [
        "sctp 10.96.0.10:53<10.1.0.6",
        "tcp 10.96.0.10:53<10.1.0.6",
        "udp 10.96.0.10:53<10.1.0.5",
        "udp 10.96.0.10:54<10.1.0.6",
        "udp 10.96.0.11:53<10.1.0.6",
      ],
      leftIPv6: ["udp fd96::10:53<fd01::6"],
    });
  });

  it("deletes IPv6 flows and reads addresses in any spelling", async () => {
    expect(await inNamespace("flowsIPv6")).toEqual({
      deleted: 2,
      left: ["tcp fd96::10:53<fd01::6", "udp fd96::10:53<fd01::5", "udp fd96::11:53<fd01::6"],
      leftIPv4: ["udp 10.96.0.10:53<10.1.0.6"],
    });
  });

  it("takes a node port for the host's own addresses only, and `only` at its word", async () => {
    expect(await inNamespace("nodePorts")).toEqual({
      deleted: 3,
      left: ["udp 192.0.2.1:30053<10.1.0.5", "udp 192.0.2.1:30054<192.0.2.1", "udp 198.51.100.1:30053<198.51.100.1"],
    });
  });

  it("serves thousands of filters in one call", async () => {
    expect(await inNamespace("thousandsOfFilters")).toEqual({
      deleted: 200,
      kept: 100,
      others: ["tcp 10.97.0.1:53<10.1.0.6", "udp 10.98.0.1:53<10.1.0.6"],
    });
  });

  it("has the kernel do the filtering, in all zones", async () => {
    expect(await inNamespace("kernelFilter")).toEqual([52, 51, 51, 0, 2]);
  });

  it("leaves an entry alone that took the place of the one it saw", async () => {
    expect(await inNamespace("replacedEntry")).toEqual({ errnos: [2], left: ["udp 10.96.0.10:53<10.1.0.5"] });
  });

  it("says when it has no right to", needs("setpriv"), async () => {
    const codes = await inNamespace("refused", ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]);
    expect(codes).toEqual(["permission_denied", "permission_denied"]);
  });
});

describe("nf_tables of a real kernel", needs("root", "netns", "nft"), () => {
  it("sees the generation change, and who committed to which tables", async () => {
    const commit = { kind: "commit", pid: true, process: "nft" };
    expect(await inNamespace("nft")).toEqual({
      changed: 2,
      commits: [
        { ...commit, generation: 1, tables: ["ip turnout", "inet other"] },
        { ...commit, generation: 2, tables: ["ip turnout"] },
      ],
      end: { done: true },
    });
  });

  it("lists tables, and tells iptables' by their built-in chains", async () => {
    // Of iptables or not, which known chains are there, and how many chains and sets in all.
    const listed = ['ip nat [true,["PREROUTING","KUBE-PROXY-CANARY"],4]', "ip mangle [false,[],1]", "inet filter [false,[],1]"];
    expect(await inNamespace("tables")).toEqual({ none: [], listed });
  });

  it("says that commits were lost, and sees the next one", async () => {
    expect(await inNamespace("overrun")).toEqual({ first: "lost", second: ["ip afterwards"] });
  });
});

describe("addresses of a real kernel", needs("root", "netns", "ip"), () => {
  it("lists both families and sees changes", async () => {
    expect(await inNamespace("addresses")).toEqual({
      seen: { done: false },
      listed: [
        [
          { ip: "127.0.0.1", prefixLength: 8, link: "lo" },
          { ip: "192.0.2.7", prefixLength: 24, link: "veth0" },
          { ip: "192.0.2.8", prefixLength: 32, link: "veth0" },
        ],
        [
          { ip: "::1", prefixLength: 128, link: "lo" },
          { ip: "2001:db8::7", prefixLength: 64, link: "veth0" },
        ],
      ],
      ended: true,
    });
  });

  it("tells of a pair of devices whether it leads anywhere, and of the addresses at its other end", async () => {
    expect(await inNamespace("behind")).toEqual({
      before: { veth0: "true false elsewhere", br0: "false false here", behind: [] },
      after: { veth0: "true true elsewhere", br0: "false false here", behind: ["127.0.0.1", "10.1.0.5", "::1", "fd00::5"] },
      noOne: "unknown",
    });
  });

  it("lists devices and routes, and sees changes", async () => {
    expect(await inNamespace("devices")).toEqual({
      seen: { done: false },
      devices: ["lo   true", "br0 bridge  false", "veth1 veth  false", "veth0 veth br0 false"],
      routes: [
        "0.0.0.0/0 veth1 by a router",
        "0.0.0.0/0 veth1 by a router",
        "10.1.1.0/24 br0",
        "10.1.2.0/24 veth1 by a router",
        "192.0.2.0/24 veth1",
        "2001:db8::/64 veth1",
        "::/0 veth1 by a router",
      ],
      ended: true,
    });
  });

  it("survives thousands of calls at once", async () => {
    expect(await inNamespace("manyAtOnce")).toEqual({ generations: 1, lists: 2 });
  });
});
