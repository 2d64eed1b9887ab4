import { fileURLToPath } from "node:url";
import { runInVm } from "@turnout/house/vm";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const INIT = `'${process.execPath}' '${MAIN}' run --init-only --backend iptables --backend-option variant=legacy --conntrack-min 524288`;
const MAX = "/proc/sys/net/netfilter/nf_conntrack_max";

describe("--init-only on a machine that has not loaded conntrack", { ...needs("uml", "iptables-legacy"), timeout: 330_000 }, () => {
  it("loads and sets it, or ends with 1 where that can't be", async () => {
    const script = `
      echo "conntrack at first: $(cat ${MAX} 2>/dev/null)"
      loader=$(cat /proc/sys/kernel/modprobe)
      mkdir -p /tmp/bin && printf '#!/bin/sh\nexit 1\n' >/tmp/bin/modprobe && chmod +x /tmp/bin/modprobe
      echo /bin/false >/proc/sys/kernel/modprobe
      PATH=/tmp/bin:$PATH
      ${INIT}; echo "without a module: $? $(cat ${MAX} 2>/dev/null)"
      echo $loader >/proc/sys/kernel/modprobe
      ${INIT}; echo "with it: $? $(cat ${MAX})"
      mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
      ${INIT} --conntrack-udp-timeout 77s; echo "more, read-only: $?"`;
    const { stdout, stderr } = await runInVm({ modules: ["nfnetlink"], command: ["/bin/sh", "-c", script] });
    expect(stdout.trim().split(/ *\n/)).toEqual(["conntrack at first:", "without a module: 1", "with it: 0 524288", "more, read-only: 1"]);
    expect(stderr).toMatch(
      /\[host_unsupported\] host settings can't be set: net.netfilter.nf_conntrack_max=524288, .*\(ENOENT\): .*nf_conntrack is not loaded/,
    );
    expect(stderr).toMatch(/\[permission_denied\] host settings can't be set: net.netfilter.nf_conntrack_udp_timeout=77 \(EROFS\)/);
  });
});
