import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import { findBpfMounts } from "@turnout/host/bpf";
import { needs } from "@turnout/house/needs";
import { beforeEach, describe, expect, it } from "vitest";
import { ebpfModule } from "./module.ts";
import { probeEbpf, readFacts } from "./probe.ts";
import { fakeWorld } from "./test-support/fake-world.ts";
import type { FakeWorld } from "./test-support/fake-world.ts";
import { ownCgroup } from "./testing/namespaces.ts";
import type { EbpfWorld } from "./world.ts";

const { signal } = new AbortController();

it("facts tell addresses on which processes of the host listen from those that a proxy has put on a device", async () => {
  const world = fakeWorld();
  const links = { eth0: "172.18.0.1", nodelocaldns: "10.96.0.1", "kube-ipvs0": "10.96.0.2", turnout0: "10.96.0.3" };
  world.netlink.setAddresses(
    "IPv4",
    Object.entries(links).map(([link, ip]) => ({ ip, link, prefixLength: 32 })),
  );
  const { addresses, addressesOfNoProxy } = await readFacts(ebpfModule.parseOptions({}), world, true);
  expect([addresses.IPv4, addressesOfNoProxy.IPv4]).toEqual([Object.values(links).toSorted(), ["10.96.0.1", "172.18.0.1"]]);
});

describe("a probe warns", () => {
  let world: FakeWorld;
  beforeEach(() => (world = fakeWorld()));

  async function warnings(
    changes: Partial<EbpfWorld>,
    options: Parameters<typeof ebpfModule.parseOptions>[0] = {},
  ): Promise<readonly string[]> {
    const { problems } = await probeEbpf(ebpfModule.parseOptions(options), { ...world, ...changes }, signal);
    expect(problems).toEqual([]);
    return world.log.lines.filter((line) => line.startsWith("warn "));
  }

  it("of nothing where nothing is missing", async () => expect(await warnings({})).toEqual([]));

  it("that sockets can't be ended, as the kernel has no SOCK_DESTROY", async () => {
    const error = new ProxyError("host_unsupported", "no SOCK_DESTROY", { hint: "another kernel" });
    const probeBpf: EbpfWorld["probeBpf"] = async () => ({
      ...(await world.probeBpf()),
      missing: new Map([["socket-destroy", error]]),
    });
    expect(await warnings({ probeBpf })).toEqual([
      'warn UDP sockets stay connected to endpoints that are gone {"error":"[host_unsupported] no SOCK_DESTROY: another kernel"}',
    ]);
  });

  it("that sockets can't be ended, as a right is missing; of a network namespace that is gone it doesn't", async () => {
    const failing = (code: "permission_denied" | "not_found"): Pick<EbpfWorld, "namespaceCookie"> => ({
      namespaceCookie(path) {
        if (path !== undefined) throw new ProxyError(code, "a network namespace can't be entered (EPERM)");
        return world.namespaceCookie();
      },
    });
    expect(await warnings(failing("not_found"))).toEqual([]);
    expect(await warnings(failing("permission_denied"))).toEqual([
      expect.stringMatching(/^warn UDP sockets stay .*\/proc\/1\/ns\/net: .*CAP_SYS_ADMIN/),
    ]);
  });

  const NO_NAT = new ProxyError("host_unsupported", "no functions of conntrack", { hint: "modprobe nf_nat" });

  /** A kernel whose nf_nat is a module: `nft --check` has it loaded, unless there is none. */
  function withModule(isThere: boolean): Pick<EbpfWorld, "exec" | "probeBpf"> {
    let isLoaded = false;
    const run: EbpfWorld["exec"]["run"] = (file, args, options) => {
      if (!args.includes("--check")) return world.exec.run(file, args, options);
      isLoaded ||= isThere && options?.input?.includes("type nat hook") === true;
      return Promise.resolve({ code: isThere ? 0 : 1, stdout: "", stderr: "" });
    };
    return {
      exec: { ...world.exec, run },
      probeBpf: async () => ({ ...(await world.probeBpf()), missing: new Map(isLoaded ? [] : [["conntrack", NO_NAT]]) }),
    };
  }

  it("of nothing where nf_nat is a module that nobody has loaded yet: it is loaded", async () => {
    expect(await warnings(withModule(true))).toEqual([]);
    const { facts, capabilities } = await probeEbpf(ebpfModule.parseOptions({}), { ...world, ...withModule(true) }, signal);
    expect([facts.hasPackets, capabilities]).toEqual([true, {}]);
  });

  it("that packets can't be served where there is no such module; with host-sockets-only that is a problem", async () => {
    expect(await warnings(withModule(false))).toEqual([expect.stringMatching(/^warn only sockets of this node .*modprobe nf_nat/)]);
    const options = ebpfModule.parseOptions({ "host-sockets-only": true });
    const { problems } = await probeEbpf(options, { ...world, ...withModule(false) }, signal);
    expect(problems.map(({ message }) => message)).toEqual([
      "[host_unsupported] option host-sockets-only leaves pods to packets, which can't be served: no functions of conntrack (modprobe nf_nat)",
    ]);
  });

  it("of a kernel without cookies of network namespaces that it can't run, with the versions, and ends by no error", async () => {
    const unknown = new ProxyError("host_unsupported", "this kernel has no cookies");
    const namespaceCookie = (): never => {
      throw unknown;
    };
    const { problems } = await probeEbpf(ebpfModule.parseOptions({}), { ...world, namespaceCookie }, signal);
    expect(problems).toEqual([unknown]);
  });

  it("that a container's own processes are served alone, unless the option names a cgroup", async () => {
    const inContainer = { cgroupNumber: () => "20811" };
    expect(await warnings(inContainer, { cgroup: "/host/cgroup" })).toEqual([]);
    expect(await warnings(inContainer)).toEqual([
      expect.stringMatching(/^warn only processes below the cgroup of this container are served: .*option cgroup/),
    ]);
  });
});

describe("the number of a cgroup", needs("root", "netns", "cgroup2"), () => {
  it("is 1 of the root of all, and another of what a cgroup namespace takes for the root", () => {
    const root = findBpfMounts().cgroup2 ?? "";
    const inner = join(ownCgroup(), `turnout-ebpf-test-${process.pid}-probe`);
    const mount = mkdtempSync(join(tmpdir(), "turnout-cgroup-"));
    mkdirSync(inner);
    try {
      const mounted = `mount -t cgroup2 cgroup2 ${mount} && stat -c %i ${mount}`;
      const text = execFileSync("sh", ["-c", `echo $$ > ${inner}/cgroup.procs; exec unshare -C -m sh -c "${mounted}"`], {
        encoding: "utf8",
      });
      expect([statSync(root).ino, Number(text)]).toEqual([1, statSync(inner).ino]);
    } finally {
      rmdirSync(inner);
      rmdirSync(mount);
    }
  });
});
