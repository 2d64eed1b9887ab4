import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace, type ScriptOutcome } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

/** `$T` is turnout from its sources, and `$F` its flags for the Services of the test. */
function inNamespace(script: string, files: Readonly<Record<string, string>> = {}): Promise<ScriptOutcome> {
  return scriptInNamespace({ "cart.yaml": CART, ...files }, `F='--source file:cart.yaml --node-name node1'\n${script}`);
}

describe("the command on a real kernel", needs("root", "netns", "nft", "ip", "iptables"), () => {
  test("--once programs it, a second run finds nothing to do, cleanup removes it", async () => {
    const outcome = await inNamespace(`set -e
      $T run $F --once
      nft list map ip turnout services | grep -c 10.96.0.10
      nft -j list ruleset | md5sum >before
      $T run $F --once --dry-run
      nft -j list ruleset | md5sum | cmp - before && echo same
      $T cleanup
      nft list tables`);
    // And nothing but these lines: no table is left, and none was made by looking.
    const clean = /^1\nsame\nnft IPv4: clean\nnft IPv6: clean\n(?:\w+ IPv[46]: clean\n)*$/;
    expect(outcome).toMatchObject({ code: 0, out: expect.stringMatching(clean) as unknown });
  });

  test("run --cleanup removes what Turnout and kube-proxy wrote, also in other modes than the flags', and nothing of others", async () => {
    const outcome = await inNamespace(`set -e
      $T run $F --once
      nft add table ip kube-proxy; nft add table ip6 kube-proxy; nft add table ip mine
      iptables-nft -t nat -N KUBE-SERVICES; iptables-nft -t nat -N MINE
      iptables-nft -t nat -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
      $T run $F --cleanup --proxy-mode=ipvs >clean
      nft list tables | grep -E 'turnout|kube-proxy|mine'
      iptables-nft -t nat -S | grep -E 'KUBE|MINE'`);
    expect(outcome).toMatchObject({ code: 0, out: "table ip mine\n-N MINE\n" });
  });

  test("--once leaves nothing over, however often it is run and whatever changed", { timeout: 120_000 }, async () => {
    // Large pools of other sizes need other chains, and leave those of before idle; small ones share one.
    const pool = (size: number): string =>
      Array.from({ length: size }, (_, n) => `- {addresses: [10.1.3.${n + 1}], nodeName: node2, conditions: {ready: true}}`).join("\n");
    const sizes = [20, 40, 1];
    const files = Object.fromEntries(sizes.map((size) => [`cart-${size}.yaml`, `${CART.trimEnd()}\n${pool(size)}\n`]));
    const outcome = await inNamespace(
      `set -e
      names() { nft list table ip turnout | grep -E '^[[:space:]]*chain ' | sort; }
      for size in ${sizes.join(" ")}; do
        cp cart-$size.yaml cart.yaml
        $T run $F --once
        names >often-$size
      done
      $T run $F --once --dry-run
      nft delete table ip turnout
      $T run $F --once
      names | diff often-1 - && echo same
      cat often-* | grep -o 'pick-[-a-z0-9]*' | sort -u`,
      files,
    );
    expect(outcome).toMatchObject({ code: 0, out: expect.stringMatching(/^same\n/) as unknown });
    // The pools were in force, each in its turn.
    expect(outcome.out.split("\n").filter((line) => line.startsWith("pick-tcp"))).toHaveLength(sizes.length);
  });

  // As a hand or a deployment leaves it: broken, emptied, something else, without the Services, or not there.
  const HARMS = [
    ["head -c 500 good >cart.yaml", 2, "[invalid_object] can't be parsed"],
    [": >cart.yaml", 1, "[not_found] the source has no Service, but rules of Services are in force here: IPv4 of node node1"],
    ["echo not a manifest >cart.yaml", 2, "[invalid_object] is not an object"],
    ["printf 'apiVersion: apps/v1\\nkind: Deployment\\nmetadata: {name: x}\\n' >cart.yaml", 1, "[not_found] the source has no Service"],
    ["rm cart.yaml", 1, "[not_found] the source can't be read"],
  ] as const;

  test("a start on a bad file leaves the rules, fails, and says why in one line", { timeout: 120_000 }, async () => {
    const starts = HARMS.map(
      ([harm]) => `${harm}
      err=0; $T run $F --once 2>said || err=$?
      nft -j list ruleset | md5sum | cmp - before && echo same "$err"
      grep '^turnout:' said`,
    );
    const outcome = await inNamespace(`set -e
      $T run $F --once
      nft -j list ruleset | md5sum >before
      cp cart.yaml good
      ${starts.join("\n")}`);
    expect(outcome).toMatchObject({ code: 0 });
    const lines = outcome.out.trimEnd().split("\n");
    expect(lines).toEqual(HARMS.flatMap(([, code, said]) => [`same ${code}`, expect.stringContaining(`turnout: ${said}`) as unknown]));
  });

  test("--allow-empty removes the rules of a source that is meant to be empty", async () => {
    const outcome = await inNamespace(`set -e
      $T run $F --once
      : >cart.yaml
      $T run $F --once --allow-empty
      nft list map ip turnout services | grep -c 10.96.0.10`);
    expect(outcome).toMatchObject({ code: 1, out: "0\n" });
  });

  test("SIGTERM leaves the rules in force and exits 0; health and metrics answer meanwhile", async () => {
    const ask = (url: string): string =>
      `${process.execPath} -e 'const ask = (left) => fetch("${url}").then((r) => r.text().then((t) => console.log(r.status, t.slice(0, 40)))).catch((e) => left > 0 ? setTimeout(ask, 50, left - 1) : console.log(String(e))); ask(400)'`;
    const outcome = await inNamespace(`
      $T run $F & proxy=$!
      ${ask("http://127.0.0.1:10256/healthz")} | cut -c1-4
      ${ask("http://127.0.0.1:10249/proxyMode")}
      for i in $(seq 1 200); do nft list table ip turnout >/dev/null 2>&1 && nft list table ip6 turnout >/dev/null 2>&1 && break; sleep 0.05; done
      kill -TERM $proxy; wait $proxy; echo "exit $?"
      nft list tables | sort`);
    expect(outcome).toMatchObject({ code: 0, out: "200 \n200 nftables\nexit 0\ntable ip turnout\ntable ip6 turnout\n" });
  });

  test("acts of a foreign hand that come closely are all in the log: three singly, and how many more there were, with the last one", async () => {
    const outcome = await inNamespace(`
      $T run $F --logging-format json 2>log & proxy=$!
      until_there() { for i in $(seq 1 400); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*"; }
      until_there eval 'grep -c "first sync done" log | grep -qx 2'
      element() { nft get element ip turnout services '{ 10.96.0.10 . tcp . 80 }'; }
      for i in 1 2 3 4 5; do until_there element; sleep 0.1; nft delete element ip turnout services '{ 10.96.0.10 . tcp . 80 }'; done
      until_there element
      nft flush chain ip turnout nat-prerouting
      until_there eval 'nft list chain ip turnout nat-prerouting | grep dispatch'
      sleep 0.1
      kill -TERM $proxy; wait $proxy; echo "exit $?"
      grep "another program" log`);
    expect(outcome).toMatchObject({ code: 0 });
    const [exit, ...lines] = outcome.out.trimEnd().split("\n");
    const reported = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    expect(exit).toBe("exit 0");
    expect(reported.map(({ msg }) => msg)).toEqual([
      ...Array.from({ length: 3 }, () => "another program changed Turnout's objects; they were repaired"),
      "another program keeps changing Turnout's objects; they are repaired in at most a tenth of the time",
    ]);
    expect(reported[3]).toMatchObject({
      family: "IPv4",
      times: 3,
      what: expect.stringMatching(/^nft \(pid \d+\).*; nft \(pid/) as unknown,
    });
    expect(reported[3]?.["last"]).toMatch(/^nft \(pid \d+\) changed table ip turnout: changed chain nat-prerouting /);
  });
});
