import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import { findBpfMounts } from "@turnout/host/bpf";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseEbpfOptions } from "./options.ts";
import { probeEbpf } from "./probe.ts";
import { ownCgroup } from "./test-support/stage.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/index.ts";
import type { EbpfWorld } from "./world.ts";

const { signal } = new AbortController();

describe("a probe warns", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  let host: EbpfFakeHost;
  beforeEach(() => (host = createFakeHost()));

  async function warnings(changes: Partial<EbpfWorld>, options: Parameters<typeof parseEbpfOptions>[0] = {}): Promise<readonly string[]> {
    const { problems } = await probeEbpf(parseEbpfOptions(options), { ...host.world, ...changes }, signal);
    expect(problems).toEqual([]);
    return host.lines.filter((line) => line.startsWith("warn "));
  }

  it("of nothing where nothing is missing", async () => expect(await warnings({})).toEqual([]));

  it("that sockets can't be ended, as the kernel has no SOCK_DESTROY", async () => {
    const error = new ProxyError("host_unsupported", "no SOCK_DESTROY", { hint: "another kernel" });
    const probeBpf: EbpfWorld["probeBpf"] = async () => ({
      ...(await host.world.probeBpf()),
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
        return host.world.namespaceCookie();
      },
    });
    expect(await warnings(failing("not_found"))).toEqual([]);
    expect(await warnings(failing("permission_denied"))).toEqual([
      expect.stringMatching(/^warn UDP sockets stay .*\/proc\/1\/ns\/net: .*CAP_SYS_ADMIN/),
    ]);
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
