import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

/** A Service of both families. */
const DUAL = CART.replace(
  "clusterIPs: [10.96.0.10], ipFamilies: [IPv4]",
  'clusterIPs: [10.96.0.10, "fd00:96::10"], ipFamilies: [IPv4, IPv6]',
);

/** Takes tools from `bin/`, in which each other program of this machine is. `$1`: a pattern of those that are not there. */
const TOOLS = `
  mkdir bin; for folder in $(echo "$PATH" | tr : ' '); do ln -s "$folder"/* bin/ 2>/dev/null || true; done
  replace() { real=$(command -v "$1"); rm bin/"$1"; sed "s,REAL,$real," > bin/"$1"; chmod +x bin/"$1"; }`;

const NO_NAT = `
  for tool in ip6tables ip6tables-nft ip6tables-legacy; do replace $tool <<'END'
#!/bin/sh
case "$*" in *nat*) echo "ip6tables v1.8.9 (legacy): can't initialize ip6tables table \\\`nat': Table does not exist (do you need to insmod?)" >&2; exit 3;; esac
exec REAL "$@"
END
  done`;

const NO_IP6 = `
  replace nft <<'END'
#!/bin/sh
case "$*" in *-f*) ;; *) exec REAL "$@";; esac
cat > input.$$
grep -q 'ip6 ' input.$$ && { echo "Error: Could not process rule: Operation not supported" >&2; exit 1; }
exec REAL "$@" < input.$$
END`;

/** Runs a proxy, and prints what a scrape says of families and health after two syncs that had a change to do. */
const RUN = `
  export PATH=$PWD/bin
  $T run --source file:cart.yaml --node-name node1 --logging-format json --backend $BACKEND $FLAGS 2>log & P=$!
  trap 'kill $P; wait $P || true' EXIT
  for _ in $(seq 600); do if grep -q 'first sync done' log; then break; fi; kill -0 $P || { cat log >&2; exit 1; }; sleep 0.1; done
  $N ask.mjs || { cat log >&2; exit 1; }
  trap - EXIT; kill $P; wait $P || true
  cat log >&2`;

const ASK = `
  const get = async (port, path) => await fetch("http://127.0.0.1:" + port + path);
  const lines = (await (await get(10249, "/metrics")).text()).split("\\n");
  console.log(lines.filter((line) => /^turnout_(family_left_out|quarantined_rows)/.test(line)).join("\\n"));
  console.log((await get(10256, "/readyz")).status, (await get(10256, "/healthz")).status);`;

describe("a host that can't do IPv6", needs("root", "netns", "nft", "ip", "iptables-nft>=1.8.0"), () => {
  test.each([
    ["iptables", "without ip6tables", "rm -f bin/ip6tables*", "is not installed"],
    ["iptables", "whose kernel has no nat of it", NO_NAT, "Table does not exist"],
    ["nft", "whose nft can't make its rules", NO_IP6, "Could not process rule: Operation not supported"],
  ])("%s on one %s: IPv4 is served, and IPv6 is left out with one line", async (backend, _name, prepare, why) => {
    const script = `set -e\n${TOOLS}\n${prepare}\nBACKEND=${backend} FLAGS=\n${RUN}`;
    const { out, err } = await scriptInNamespace({ "cart.yaml": DUAL, "ask.mjs": ASK }, script);
    expect(out.trim().split("\n").toSorted()).toEqual([
      "200 200",
      'turnout_family_left_out{ip_family="IPv4"} 0',
      'turnout_family_left_out{ip_family="IPv6"} 1',
      'turnout_quarantined_rows{ip_family="IPv4"} 0',
    ]);
    const warnings = err.split("\n").filter((line) => /"level":"(warn|error)"/.test(line) && line.includes("IPv6"));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("this family is left out: its Services have no rules on this node");
    expect(warnings[0]).toContain(why);
  });

  test("ends with an error where IPv6 is the primary family of the node", async () => {
    const script = `set -e\n${TOOLS}\nrm -f bin/ip6tables*\nBACKEND=iptables FLAGS='--bind-address 2001:db8::1'\n${RUN}`;
    const { code, err } = await scriptInNamespace({ "cart.yaml": DUAL, "ask.mjs": ASK }, script);
    expect(code).not.toBe(0);
    expect(err).toContain("this host can't do the primary family of the node: no IPv6: ip6tables");
  });
});
