import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What nodes in namespaces and their images are made of, as host-setup.sh has it: a program or file, and Debian's package that has it. */
const TOOLS: readonly string[] = [
  "containerd:containerd",
  "runc:runc",
  "/usr/lib/cni/ptp:containernetworking-plugins",
  "busybox:busybox-static",
  "dash:dash",
  "curl:curl",
  "wget:wget",
  "dig:bind9-dnsutils",
  "ping:iputils-ping",
  "nc.openbsd:netcat-openbsd",
  "ip:iproute2",
  "conntrack:conntrack",
  "nft:nftables",
  "iptables:iptables",
  "ipset:ipset",
  "gcc:gcc",
];

/** Install what this machine lacks; without root, or off Debian, it prints what to install. @throws {Error} when that fails. */
export function installTools(): void {
  const { status } = spawnSync("sh", [fileURLToPath(new URL("../../scripts/host-setup.sh", import.meta.url)), ...TOOLS], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("scripts/host-setup.sh failed");
}
