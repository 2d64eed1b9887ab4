import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { VmChecks } from "../checks.ts";

function run(file: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8" });
  assert.equal(status, 0, `${file} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** What the guest must be good for; played in one guest by ipvs-vm.ts. */
export const IPVS_CHECKS: VmChecks = {
  "has IPVS on the address of a dummy device": () => {
    run("ip", "link", "add", "kube-ipvs0", "type", "dummy");
    run("ip", "address", "add", "10.96.0.1/32", "dev", "kube-ipvs0");
    run("ipvsadm", "-A", "-t", "10.96.0.1:80", "-s", "mh");
    assert.match(run("ipvsadm", "-Ln"), /^TCP {2}10\.96\.0\.1:80 mh$/m);
  },

  "has ipset and the rules that ask it": () => {
    run("ipset", "create", "KUBE-CLUSTER-IP", "hash:ip,port");
    run("iptables-legacy", "-t", "nat", "-A", "OUTPUT", "-m", "set", "--match-set", "KUBE-CLUSTER-IP", "dst,dst", "-j", "ACCEPT");
    run("ip6tables-legacy", "-A", "OUTPUT", "-m", "ipvs", "--vport", "80", "-j", "REJECT");
  },

  "has no nftables for IP": () => {
    for (const family of ["ip", "ip6", "inet"]) {
      const { status, stderr } = spawnSync("nft", ["add", "table", family, "turnout"], { encoding: "utf8" });
      assert.deepEqual([status, /Operation not supported/.test(stderr)], [1, true], stderr);
    }
  },

  "writes to the host in its folder only": () => {
    writeFileSync(`${process.env["FOLDER"]}/kept.txt`, "kept");
    writeFileSync("/tmp/gone.txt", "gone");
    assert.throws(() => writeFileSync("/root/turnout-guest.txt", ""), { code: "EROFS" });
  },

  "fails with a message": () => {
    throw new Error("one is not two");
  },
};
