import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace, type ScriptOutcome } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

/** What the real kube-proxy wrote (bench/kube-proxy/record.ts), without the rules whose counters the kernel would have to be given first. */
const CHAINS = fileURLToPath(new URL("../../backend-iptables/test/kube-proxy/masquerade-all.IPv4.save", import.meta.url));

/** Prints metrics about other proxies, and what the status says of them. */
const ASK = `
  const get = async (path) => (await fetch("http://127.0.0.1:10249" + path)).text();
  const lines = (await get("/metrics")).split("\\n").filter((line) => line.startsWith("turnout_other_proxies"));
  const { families } = JSON.parse(await get("/turnout/status"));
  const seen = families.flatMap(({ family, otherProxies = [] }) => otherProxies.map(({ backend, what }) => [family, backend, what].join(" ")));
  console.log([...lines, ...seen].join("\\n"));`;

const REMOVED = "the rules of a former proxy were removed";
const OTHER = "another service proxy runs on this node";
const HIDDEN = "rules of a former proxy may still be in force";

/**
 * `$F` are the flags for the Services of the test, `write VARIANT` does what a kube-proxy does, `live VARIANT` counts its jumps, and `wait_for TEXT`
 * waits for the log (or another file) of the process `$P`.
 */
function execute(script: string): Promise<ScriptOutcome> {
  const preamble = `set -e
    F='--source file:cart.yaml --node-name node1 --logging-format json'
    write() { grep -v nfacct ${CHAINS} | iptables-$1-restore --noflush; }
    live() { iptables-$1-save 2>/dev/null | grep -c -- '-j KUBE-SERVICES' || true; }
    # No longer than a minute: whoever waits for ever is killed from outside, and what it started stays.
    wait_for() { for _ in $(seq 600); do if grep -q "$1" \${2:-log}; then return 0; fi; kill -0 $P; sleep 0.1; done; exit 1; }
    end() { trap - EXIT; kill $P; wait $P || true; }`;
  return scriptInNamespace({ "cart.yaml": CART, "ask.mjs": ASK }, `${preamble}\n${script}`);
}

/** The lines of a log with this text. */
function linesOf({ out, err }: ScriptOutcome, text: string): readonly Readonly<Record<string, unknown>>[] {
  const lines = `${out}\n${err}`.split("\n").filter((line) => line.startsWith("{") && line.includes(text));
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

describe("rules of another proxy", needs("root", "netns", "nft", "ip", "iptables-nft>=1.8.0", "iptables-legacy", "setpriv"), () => {
  test("that can't be looked for are not called clean, and fail a cleanup where the kernel has them", async () => {
    const outcome = await execute(`
      mkdir bin; for tool in nft ip sysctl ipset; do ln -s $(command -v $tool) bin/; done
      without_iptables() { PATH=$PWD/bin $T "$@" && echo 0 || echo $?; }
      without_iptables cleanup --backend iptables
      without_iptables run --cleanup --logging-format json
      write nft
      without_iptables cleanup`);
    const hint = "install it: apt-get install iptables; in a container, use the image with all backends";
    const missing = (backend: string): readonly string[] =>
      ["IPv4", "IPv6"].map((family) => `${backend} ${family}: not looked for, iptables is not installed (${hint})`);
    const [none, others] = [missing("iptables"), missing("ipvs")];
    const lines = outcome.out.split("\n").filter((line) => !line.endsWith(": clean"));
    // A table of IPv4 alone: nobody knows of the other family, and nothing speaks for it.
    expect(lines).toEqual([...none, "1", "0", none[1], others[1], "1", ""]);
    expect(outcome.err).toContain(
      "the nft variant of iptables is not installed, but the kernel has rules of it: IPv4: 25 KUBE-* chains in filter, mangle, nat",
    );
    expect(linesOf(outcome, "can't be looked for").map(({ backend, family }) => `${String(backend)} ${String(family)}`)).toEqual([
      "iptables IPv4",
      "iptables IPv6",
      "ipvs IPv4",
      "ipvs IPv6",
    ]);
  });

  test("that are made again are told once, counted and shown, and left alone", async () => {
    const outcome = await execute(`
      write nft
      $T run $F --backend nft --iptables-sync-period 2s --healthz-bind-address "" 2>log & P=$!
      trap 'cat log >&2; kill $P' EXIT
      wait_for "${REMOVED}"; live nft; grep ^CapPrm /proc/$P/status
      write nft
      wait_for "${OTHER}"; live nft
      wait_for '^CapPrm:.0*1400$' /proc/$P/status
      sleep 5; $N ask.mjs
      live nft; end; cat log`);
    expect(linesOf(outcome, OTHER)).toMatchObject([{ family: "IPv4", what: expect.stringContaining("KUBE-* chains") as unknown }]);
    expect(linesOf(outcome, REMOVED)).toHaveLength(1);
    const [made, rights, ...rest] = outcome.out.split("\n").filter((line) => !line.startsWith("{"));
    // While one may come back, what looking takes is kept: CAP_NET_RAW.
    expect([made, rights]).toEqual(["0", expect.stringMatching(/^CapPrm:\t0*[^0]0*3400$/)]);
    expect(rest).toEqual([
      "4",
      'turnout_other_proxies{ip_family="IPv4"} 1',
      'turnout_other_proxies{ip_family="IPv6"} 0',
      "IPv4 iptables 27 KUBE-* chains of iptables-nft (nft)",
      "4",
      "",
    ]);
  });

  test("in one variant of iptables go although the other can't be read, and one line names the right that is missing", async () => {
    const outcome = await execute(`
      write nft; iptables-legacy -t nat -L >/dev/null; ip6tables-legacy -t nat -L >/dev/null
      A='-all,+net_admin'
      setpriv --bounding-set $A --inh-caps $A $T run $F --backend nft 2>log & P=$!
      trap 'cat log >&2; kill $P' EXIT
      wait_for "${REMOVED}"; sleep 1; live nft; end; cat log`);
    expect(outcome.out.split("\n").filter((line) => !line.startsWith("{"))).toEqual(["0", ""]);
    expect(linesOf(outcome, HIDDEN)).toMatchObject([{ error: expect.stringContaining("CAP_NET_RAW") as unknown }]);
    expect(linesOf(outcome, "capabilities of this process")).toMatchObject([
      { missingMeanwhile: expect.stringContaining("CAP_NET_RAW (to remove rules of former proxies in legacy iptables)") as unknown },
    ]);
  });

  test("in the variant of iptables that is not in use go, unless they are to be kept; kubelet's stay", async () => {
    const outcome = await execute(`
      write legacy
      iptables-legacy -t nat -N MINE; ip6tables-legacy -t nat -N KUBE-MARK-MASQ
      $T run $F --once --backend iptables --backend-option variant=nft --keep-other-rules
      live legacy; live nft
      $T run $F --once --backend iptables --backend-option variant=nft
      live legacy; live nft
      iptables-legacy -t nat -S | grep -E 'KUBE|MINE'; ip6tables-legacy -t nat -S | grep KUBE`);
    expect(outcome.out).toBe("4\n4\n0\n4\n-N MINE\n-N KUBE-MARK-MASQ\n");
    expect(linesOf(outcome, "in force beside ours")).toMatchObject([
      { what: expect.stringContaining("iptables-legacy (legacy)") as unknown },
    ]);
    expect(linesOf(outcome, REMOVED)).toMatchObject([{ what: expect.stringContaining("iptables-legacy (legacy)") as unknown }]);
  });
});
