import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

const NETFILTER = "/proc/sys/net/netfilter/nf_conntrack";
const CLOSE_WAIT = `${NETFILTER}_tcp_timeout_close_wait`;
const HASH_SIZE = "/sys/module/nf_conntrack/parameters/hashsize";

/** A server that closes first, and a client that doesn't: conntrack has the connection in CLOSE_WAIT. */
const LEAK = `
  const { connect, createServer } = require("node:net");
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1", () => {
    const client = connect({ port: server.address().port, host: "127.0.0.1", allowHalfOpen: true });
    const list = () => String(require("node:child_process").execFileSync("conntrack", ["-L", "-p", "tcp"], { stdio: ["ignore", "pipe", "ignore"] }));
    // The kernel acknowledges the end some milliseconds after it has told of it: until then the state is FIN_WAIT.
    const tell = (tries) => {
      const listed = list();
      if (!listed.includes("CLOSE_WAIT") && tries > 0) return void setTimeout(tell, 50, tries - 1);
      process.stdout.write(listed);
      process.exit(0);
    };
    client.on("end", () => tell(100)).resume();
  });`;

describe("the host of a running proxy", needs("root", "netns", "nft", "ip", "conntrack", "setpriv"), () => {
  test("should set TCP CLOSE_WAIT timeout, the size of conntrack and the oom score, and needs only its capabilities from then on", async () => {
    // The size of conntrack is that of all namespaces: ordinary files lie over the kernel's.
    const outcome = await scriptInNamespace(
      { "cart.yaml": CART, "leak.cjs": LEAK },
      `set -e
      for file in ${NETFILTER}_max ${HASH_SIZE}; do echo 4096 >$(basename $file); mount --bind $(basename $file) $file; done
      $T run --source file:cart.yaml --node-name node1 --backend nft --conntrack-min 400000 --conntrack-udp-timeout 77s --oom-score-adj 17 \\
        --healthz-bind-address "" --metrics-bind-address "" 2>log & P=$!
      trap 'cat log >&2; kill $P; wait $P' EXIT
      # CAP_NET_RAW and CAP_BPF go last, when rules of former proxies have been looked for: CAP_NET_ADMIN and CAP_NET_BIND_SERVICE are left.
      until grep -q '^CapPrm:.0*1400$' /proc/$P/status; do kill -0 $P; sleep 0.1; done
      grep -h . ${NETFILTER}_max ${HASH_SIZE} ${NETFILTER}_tcp_timeout_established ${CLOSE_WAIT} ${NETFILTER}_udp_timeout /proc/$P/oom_score_adj
      grep NoNewPrivs /proc/$P/status
      grep -h ^CapPrm $(pgrep -P $P | sed 's:.*:/proc/&/status:') | sort -u
      nft list map ip turnout services | grep -c 10.96.0.10
      $N leak.cjs | grep -o '^tcp  *6 [0-9]* CLOSE_WAIT'`,
    );
    const lines = outcome.out.split("\n").map((line) => line.trim().replaceAll(/\s+/g, " "));
    expect([lines.slice(0, -2), outcome.err]).toEqual([
      ["400000", "100000", "86400", "3600", "77", "17", "NoNewPrivs: 1", "CapPrm: 0000008000003000", "1"],
      expect.stringContaining("capabilities of this process") as unknown,
    ]);
    expect(Number(/^tcp 6 (\d+) CLOSE_WAIT$/.exec(lines.at(-2) ?? "")?.[1])).toBeGreaterThan(3540);
  });

  test("--init-only sets kernel parameters and writes no rule; where /proc/sys is read-only it fails, and a proxy goes on without", async () => {
    const outcome = await scriptInNamespace(
      { "cart.yaml": CART, "leak.cjs": LEAK },
      `set -e
      init() { $T run --init-only --conntrack-max-per-core 0 "$@"; }
      init --backend iptables --backend-option variant=nft
      cat ${CLOSE_WAIT} /proc/sys/net/ipv4/conf/all/route_localnet
      nft list ruleset
      echo 60 >${CLOSE_WAIT}
      mount --bind /proc/sys /proc/sys
      mount -o remount,bind,ro /proc/sys
      ! init --backend nft
      cat ${CLOSE_WAIT}
      $T run --source file:cart.yaml --node-name node1 --once --backend iptables --backend-option variant=nft`,
    );
    expect(outcome).toMatchObject({ code: 0, out: "3600\n1\n60\n" });
    // It has the value already that the backend wants.
    expect(outcome.err).not.toContain("not in force on the host");
    expect(outcome.err).toMatch(
      /\[permission_denied\] host settings can't be set: net.netfilter.nf_conntrack_tcp_timeout_close_wait=3600 \(EROFS\)/,
    );
  });
});
