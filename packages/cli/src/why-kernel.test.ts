import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-why-"));
  await writeFile(join(directory, "cart.yaml"), CART);
});

afterAll(() => rm(directory, { recursive: true }));

/** Settings of the host stay as they are. */
const RUN =
  "--conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s --oom-score-adj 0 2>log.txt";
const FLAGS = "--source file:cart.yaml --backend nft --node-name node1 --service-metrics 5";

describe("a proxy that somebody stopped", { ...needs("root", "netns", "nft>=1.0.1", "ip"), timeout: 120_000 }, () => {
  const told: Record<string, string> = {};

  beforeAll(async () => {
    const asked = { why: "why 10.1.1.9 10.96.0.10:80", alone: `why 10.1.1.9 10.96.0.10:80 ${FLAGS}`, status: "status", doctor: "doctor" };
    const script = `$T run ${FLAGS} ${RUN} & P=$!
      until $T status >/dev/null 2>&1; do kill -0 $P || exit 9; sleep 0.2; done
      kill -STOP $P
      ${Object.entries(asked)
        .map(([name, words]) => `echo "== ${name} $P"; $T ${words} 2>&1`)
        .join("\n")}
      kill -KILL $P`;
    const { out } = await scriptInNamespace(directory, script);
    for (const [, name = "", text = ""] of out.matchAll(/^== (\w+ \d+)\n([^]*?)(?=^== |$(?![^]))/gm)) {
      const [what = "", pid = ""] = name.split(" ");
      told[what] = text.replaceAll(pid, "PID");
    }
  });

  it("is named with what has it go on, and with the whole command that asks without it", () => {
    expect(told["why"]).toBe(
      "turnout: [timed_out] the proxy accepts connections and does not answer: its process is stopped (pid PID, state T): 127.0.0.1:10249: kill -CONT PID has it go on; until then no change of a Service or endpoint comes into force. turnout doctor says more. To ask without it: turnout why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend nft --node-name node1 --service-metrics 5\n",
    );
    expect(told["status"]).toMatch(/its process is stopped \(pid PID, state T\)/);
  });

  it("is named once where everything is read without it, and rules that are whole with these flags are said to be", () => {
    expect(told["alone"]).toMatch(/complete, as the flags of this command make them \(\d+ checked\)/);
    expect(told["alone"]).toMatch(/^culprit: the proxy is stopped \(SIGSTOP\), pid PID/m);
    expect(told["alone"]).not.toContain("accepts connections");
  });

  it("is in one state", () => {
    expect(told["doctor"]).toMatch(/^FAULT {2}Turnout is stopped/m);
    expect(told["doctor"]).toMatch(/^rules by +Turnout \(stopped; /m);
    expect(told["doctor"]).not.toContain("running");
  });
});

describe("turnout why that reads everything itself", needs("root", "netns", "nft>=1.0.1", "ip"), () => {
  it("says of what a proxy has in its own process only what this host shows: it lacks the address", async () => {
    const script = "$T why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend userspace --node-name node1";
    const { out } = await scriptInNamespace(directory, script);
    expect(out).toContain("not looked at: what answers for the Service: it is in the proxy's process");
    expect(out).toMatch(/^culprit: 10\.96\.0\.10 is no address of this host/m);
    expect(out).not.toContain("forwarding_off");
  });

  it("refuses a node name that no Node has, and blames nothing", async () => {
    const script = "$T why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend nft --hostname-override vm";
    expect(await scriptInNamespace(directory, script)).toEqual({
      code: 1,
      out: "",
      err: "turnout: [not_found] the source has no Node vm (it has: node1): write one of these with --node-name\n",
    });
  });
});
