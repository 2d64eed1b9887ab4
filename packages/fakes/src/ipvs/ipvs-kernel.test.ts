import { jsonFromVm, nodeCommand } from "@turnout/house/vm";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { partOf } from "@turnout/host/ipvs/model";

const script = new URL("../test-support/ipvs-child.ts", import.meta.url);

const SEED = Number(process.env["SEED"] ?? 7);
const plain = { scheduler: "rr", flags: 0, timeoutSeconds: 0 };
const idle = { forward: "masquerade", activeConnections: 0, inactiveConnections: 0 };

describe("IPVS of a real kernel", needs("uml", "ipvsadm", "ip", "setpriv"), () => {
  let results: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    results = (await jsonFromVm({ command: nodeCommand(script, [String(SEED)]) })) as typeof results;
  });

  it("isn't there until its module is loaded, and then for those who may", () => {
    expect(results["absent"]).toBe("[host_unsupported] this kernel has no IPVS: load it: modprobe ip_vs");
    expect(results["noRights"]).toBe("[permission_denied] virtual servers can't be listed (EPERM): run as root or with CAP_NET_ADMIN");
  });

  it("holds what was added, and ipvsadm shows the same", () => {
    const dns = { address: "10.1.0.3", port: 53, weight: 3, ...idle };
    const voice = { address: "fd00:1::1", port: 8443, weight: 1, ...idle };
    const four = { family: "IPv4", address: "10.96.0.1", clientPrefixLength: 32 };
    const six = { family: "IPv6", address: "fd00:96::1", clientPrefixLength: 128 };
    expect(results["everyKind"]).toEqual({
      outcomes: ["ok"],
      lists: [
        {
          virtualServers: [
            {
              ...four,
              ...plain,
              protocol: "TCP",
              port: 80,
              realServers: [
                { address: "10.1.0.1", port: 8080, weight: 1, ...idle },
                { address: "10.1.0.2", port: 8080, weight: 0, ...idle },
              ],
            },
            { ...four, protocol: "UDP", port: 53, scheduler: "mh", flags: 0x11, timeoutSeconds: 10_800, realServers: [dns] },
          ],
          firewallMarks: [],
        },
        {
          virtualServers: [
            { ...six, protocol: "SCTP", port: 443, scheduler: "wrr", flags: 1, timeoutSeconds: 60, realServers: [voice] },
            { ...six, ...plain, protocol: "TCP", port: 80, realServers: [] },
          ],
          firewallMarks: [],
        },
      ],
      few: [[dns], [], [voice]],
      shown: [
        "-A --sctp-service [fd00:96::1]:443 -s wrr -p 60",
        "-A -t 10.96.0.1:80 -s rr",
        "-A -t [fd00:96::1]:80 -s rr",
        "-A -u 10.96.0.1:53 -s mh -p 10800 -b mh-port",
        "-a --sctp-service [fd00:96::1]:443 -r [fd00:1::1]:8443 -m -w 1",
        "-a -t 10.96.0.1:80 -r 10.1.0.1:8080 -m -w 1",
        "-a -t 10.96.0.1:80 -r 10.1.0.2:8080 -m -w 0",
        "-a -u 10.96.0.1:53 -r 10.1.0.3:53 -m -w 3",
      ],
    });
  });

  it("tells in which part something was changed, weights and IPv6 too, without a listing", () => {
    const web = partOf({ address: "10.96.0.1", port: 80 });
    const four = [web, partOf({ address: "10.96.0.1", port: 53 })].toSorted((a, b) => a - b);
    const six = partOf({ address: "fd00:96::1", port: 443 });
    expect(results["parts"]).toEqual({
      filled: [four, four, [six]],
      rest: [true, true, true],
      steps: [`-1,${web},-1`, `${web},${web},-1`, `-1,-1,${six}`],
      counts: [2, 1],
    });
  });

  it("keeps real servers and their weights when scheduler and persistence change", () => {
    const second = "-a -t 10.96.0.1:80 -r 10.1.0.2:8080 -m -w 5";
    const first = (weight: number): string => `-a -t 10.96.0.1:80 -r 10.1.0.1:8080 -m -w ${weight}`;
    expect(results["edits"]).toEqual([
      ["ok", "-A -t 10.96.0.1:80 -s mh -p 100 -b mh-port", first(1), second],
      ["ok", "-A -t 10.96.0.1:80 -s rr", first(1), second],
      ["ok", "-A -t 10.96.0.1:80 -s rr", first(0), second],
      ["ok", "-A -t 10.96.0.1:80 -s rr", second],
      ["ok"],
    ]);
  });

  it("refuses some operations and carries out the rest", () => {
    const badServer = "invalid_object a real server can't be added (EINVAL)";
    expect(results["refusals"]).toEqual({
      outcomes: [
        "already_exists a virtual server can't be added (EEXIST)",
        "not_found a virtual server can't be changed, its virtual server isn't there (ESRCH)",
        "not_found a virtual server can't be deleted, its virtual server isn't there (ESRCH)",
        "host_unsupported a virtual server can't be added, there is no scheduler nope (ENOENT)",
        "host_unsupported a virtual server can't be changed, there is no scheduler nope (ENOENT)",
        "invalid_object a virtual server can't be added (EINVAL)",
        "invalid_object a virtual server can't be added (EINVAL)",
        "not_found a real server can't be added, its virtual server isn't there (ESRCH)",
        "already_exists a real server can't be added (EEXIST)",
        "not_found a real server can't be changed (ENOENT)",
        "not_found a real server can't be deleted (ENOENT)",
        "not_found a real server can't be deleted, its virtual server isn't there (ESRCH)",
        ...Array.from({ length: 6 }, () => badServer),
        ...Array.from({ length: 5 }, () => "ok"),
      ],
      calledOff: ["[canceled] a change of IPVS was given up: TCP 10.96.0.1:99"],
      shown: ["-A -t [fd00:96::1]:80 -s rr", "-a -t [fd00:96::1]:80 -r [2001:db8::1]:8080 -m -w 1"],
    });
  });

  it("tells what others made, by firewall mark and otherwise", () => {
    const at = { family: "IPv4", address: "10.96.0.9", port: 80 };
    expect(results["others"]).toEqual({
      IPv4: {
        virtualServers: [
          {
            ...at,
            protocol: "TCP",
            scheduler: "sh",
            flags: 0x11,
            timeoutSeconds: 100,
            clientPrefixLength: 16,
            realServers: [
              { address: "10.1.0.1", port: 80, weight: 1, ...idle, forward: "tunnel" },
              { address: "10.1.0.2", port: 80, weight: 1, ...idle, forward: "route" },
            ],
          },
          { ...at, ...plain, protocol: "UDP", flags: 4, clientPrefixLength: 32, realServers: [] },
        ],
        firewallMarks: [7],
      },
      IPv6: { virtualServers: [], firewallMarks: [8] },
    });
  });

  it("has a version and timeouts, of which 0 leaves one as it is", () => {
    expect(results["timeouts"]).toEqual({
      version: "1.2.1",
      before: { tcp: 900, tcpFin: 120, udp: 300 },
      after: { tcp: 900, tcpFin: 30, udp: 10 },
      refused: "[tool_failed] timeouts of IPVS can't be set (EINVAL): tcp 2147483647, tcpfin 0, udp 0",
    });
  });

  it("takes many operations at once, and listings wait for their turn", () => {
    expect(results["many"]).toEqual({
      refused: ["604 already_exists a virtual server can't be added (EEXIST)"],
      counts: ["300 300 900", "300 300 900", "0 0 0"],
    });
  });

  it("does what the fake does", () => {
    expect({ seed: SEED, found: results["fake"] }).toEqual({ seed: SEED, found: [] });
  });

  it("keeps a connection at weight 0, drops its packets once the real server is deleted, and goes on when it is back", () => {
    const states = [
      "connected: weight 1, 1 active, 0 inactive; talks: yes",
      "weight 0: weight 0, 1 active, 0 inactive; talks: yes",
      "another: refused",
      "deleted: ; talks: no",
      "added again: weight 1, 1 active, 0 inactive; talks: yes",
      "counted at port 80: 1 connections, bytes in and out: some,some",
    ];
    expect(results["draining"]).toEqual({ IPv4: states, IPv6: states });
  });
});
