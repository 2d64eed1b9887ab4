import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

/** Settings of the host stay as they are. */
const RUN =
  "--conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s --oom-score-adj 0 2>log.txt";
const FLAGS = "--source file:cart.yaml --backend nft --node-name node1 --service-metrics 5";

describe("a proxy that somebody stopped", { ...needs("root", "netns", "nft>=1.0.1", "ip"), timeout: 120_000 }, () => {
  const reported: Record<string, string> = {};

  beforeAll(async () => {
    const asked = {
      why: "why 10.1.1.9 10.96.0.10:80",
      standalone: `why 10.1.1.9 10.96.0.10:80 ${FLAGS}`,
      status: "status",
      doctor: "doctor",
    };
    const script = `$T run ${FLAGS} ${RUN} & P=$!
      until $T status >/dev/null 2>&1; do kill -0 $P || exit 9; sleep 0.2; done
      kill -STOP $P
      ${Object.entries(asked)
        .map(([name, words]) => `echo "== ${name} $P"; $T ${words} 2>&1`)
        .join("\n")}
      kill -KILL $P`;
    const { out } = await scriptInNamespace({ "cart.yaml": CART }, script);
    for (const [, name = "", text = ""] of out.matchAll(/^== (\w+ \d+)\n([^]*?)(?=^== |$(?![^]))/gm)) {
      const [what = "", pid = ""] = name.split(" ");
      reported[what] = text.replaceAll(pid, "PID").replace(/why-\d+-/, "why-NAMESPACE-");
    }
  });

  it("is named with what has it go on, and with the whole command that asks without it", () => {
    expect(reported["why"]).toBe(
      "turnout: [timed_out] the proxy accepts connections and does not answer: its process is stopped (pid PID, state T): /run/turnout/why-NAMESPACE-10249.sock: kill -CONT PID has it go on; until then no change of a Service or endpoint comes into force. turnout doctor says more. To ask without it: turnout why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend nft --node-name node1 --service-metrics 5\n",
    );
    expect(reported["status"]).toMatch(/its process is stopped \(pid PID, state T\)/);
  });

  it("is named once where everything is read without it, and rules that are whole with these flags are said to be", () => {
    expect(reported["standalone"]).toMatch(/complete, as the flags of this command make them \(\d+ checked\)/);
    expect(reported["standalone"]).toMatch(/^culprit: the proxy is stopped \(SIGSTOP\), pid PID/m);
    expect(reported["standalone"]).not.toContain("accepts connections");
  });

  it("is in one state", () => {
    expect(reported["doctor"]).toMatch(/^FAULT {2}Turnout is stopped/m);
    expect(reported["doctor"]).toMatch(/^rules by +Turnout \(stopped; /m);
    expect(reported["doctor"]).not.toContain("running");
  });
});

describe("turnout why that reads everything itself", needs("root", "netns", "nft>=1.0.1", "ip"), () => {
  it("says of what a proxy has in its own process only what this host shows: it lacks the address", async () => {
    const script = "$T why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend userspace --node-name node1";
    const { out } = await scriptInNamespace({ "cart.yaml": CART }, script);
    expect(out).toContain("not looked at: what answers for the Service: it is in the proxy's process");
    expect(out).toMatch(/^culprit: 10\.96\.0\.10 is no address of this host/m);
    expect(out).not.toContain("forwarding_off");
  });

  it("refuses a node name that no Node has, and blames nothing", async () => {
    const script = "$T why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend nft --hostname-override vm";
    expect(await scriptInNamespace({ "cart.yaml": CART }, script)).toEqual({
      code: 1,
      out: "",
      err: "turnout: [not_found] the source has no Node vm (it has: node1): write one of these with --node-name\n",
    });
  });
});

describe("the why of the page", needs("root", "netns", "nft>=1.0.1", "ip", "iptables-legacy"), () => {
  it("says first what the proxy has no right to read, with the command that names the culprit there, and knows the host", async () => {
    const ask = (query: string): string =>
      `$N -e 'fetch("http://127.0.0.1:10249/turnout/why?protocol=TCP&output=text&${query}").then((r) => r.text()).then(console.log)'`;
    const { out } = await scriptInNamespace(
      { "cart.yaml": CART },
      `ip link add pods type veth peer name inside; ip link set pods up; ip link set inside up; ip address add 10.1.0.1/16 dev pods; sysctl -qw net.ipv4.ip_forward=1
      iptables-legacy -A FORWARD -p tcp --dport 8080 -j DROP
      $T run ${FLAGS} --web-page ${RUN} & P=$!
      may_read() { [ $((0x$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/$P/status) >> 13 & 1)) = 1 ]; }
      until $T status >/dev/null 2>&1 && ! may_read; do kill -0 $P || exit 9; sleep 0.2; done
      ${ask("from=10.1.1.9&to=10.96.0.10:80")}; echo ==
      $T why 10.1.1.9 10.96.0.10:80; echo ==
      ${ask("from=host&to=10.96.0.10:80")} | head -1; echo ==
      $T why host 10.96.0.10:80 | head -1
      kill -KILL $P`,
    );
    const [page = "", command = "", ofPage, ofCommand] = out.split("==\n");
    expect(page).toMatch(
      /\n\ncould NOT be read by the proxy: foreign rules \(iptables-legacy\): [^]*\nto ask with all rights, as root on node node1:\n {2}turnout why 10\.1\.1\.9 10\.96\.0\.10:80\n\n {2}1 /,
    );
    expect(page).not.toContain("external_drop");
    expect(command).toContain("culprit: iptables-legacy table filter, chain FORWARD, drops the packet");
    expect(ofPage).toBe(ofCommand);
    expect(ofPage).toMatch(/^TCP from \S+ to 10\.96\.0\.10:80\/TCP, as node node1 sees it \(nft\)$/m);
  });
});
