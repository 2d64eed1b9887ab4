import { FAMILIES } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { createRandom, pickOne } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { IptablesVariant } from "@turnout/host/iptables";
import { openProxy, SHOWCASE } from "../test-support/states.ts";
import type { IptablesProxy } from "../test-support/states.ts";
import { createFakeHost } from "./index.ts";
import type { IptablesFakeHost } from "./index.ts";
import { mutate, randomInput } from "../test-support/random-inputs.ts";
import { RealTools, said, savedDifference, withoutComments } from "../test-support/real-tools.ts";
import { RULE_LINES } from "../test-support/rule-lines.ts";

/** TURNOUT_SEED=n tries other inputs than CI does. */
const SEED = Number(process.env["TURNOUT_SEED"] ?? 1);
/** TURNOUT_STEPS=n tries n times as many of them. */
const TIMES = Number(process.env["TURNOUT_STEPS"] ?? 1);
const VARIANTS: readonly IptablesVariant[] = ["legacy", "nft"];
const BOTH = VARIANTS.flatMap((variant) => FAMILIES.map((family) => [variant, family] as const));
/** Command lines, right and wrong. */
const COMMANDS: readonly string[] = [
  "iptables -V",
  "iptables-restore -V",
  "iptables-save -V",
  "iptables",
  "iptables -Q",
  "iptables -t nope -S",
  "iptables -w -t filter -S KUBE-A",
  "iptables -w 5 -S KUBE-C 1",
  "iptables -S",
  "iptables -S NOPE",
  "iptables -t mangle -S KUBE-PROXY-CANARY",
  "iptables -w -t mangle -N KUBE-PROXY-CANARY",
  "iptables -w 5 -N KUBE-PROXY-CANARY -t mangle",
  "iptables -w 1 -t mangle -S KUBE-PROXY-CANARY",
  "iptables -C KUBE-A -j KUBE-B",
  "iptables -C KUBE-A -j DROP",
  "iptables -C NOPE -j KUBE-B",
  "iptables -C KUBE-B -j NOPE",
  "iptables -D KUBE-A -j DROP",
  "iptables -D KUBE-A 2",
  "iptables -I NOPE -j KUBE-B",
  "iptables -A KUBE-B -j KUBE-A",
  "iptables -I KUBE-A 2 -j KUBE-C",
  "iptables -X KUBE-A",
  "iptables -X KUBE-C",
  "iptables -X NOPE",
  "iptables -F NOPE",
  "iptables -A KUBE-A -j MASQUERADE",
  "iptables -A KUBE-A -p tcp -m udp --dport 1",
  "iptables -A KUBE-A foo",
  "iptables -t nat -A PREROUTING -j DROP",
  "iptables -F KUBE-A",
  "iptables -X KUBE-A",
  "iptables-save -t nat -c",
  "iptables-save -t nope",
  "iptables-save -x",
  "iptables-restore --nope",
  "iptables-restore --noflush -T filter",
];

let real: RealTools;

/** The real tools in their namespace and the fake ones, which are given the same and must do the same. */
class Twins {
  readonly host: IptablesFakeHost;
  /** E.g. `iptables-nft`. */
  readonly tool: string;

  private constructor(variant: IptablesVariant, family: IPFamily) {
    this.host = createFakeHost({ variant });
    this.tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
  }

  /** Begin anew: the real one holds what the fake one starts with. */
  static async start(variant: IptablesVariant, family: IPFamily): Promise<Twins> {
    const twins = new Twins(variant, family);
    await real.load(twins.tool, (await twins.host.run(`${twins.tool}-save`)).stdout);
    return twins;
  }

  /** Give both one input of restore; what each says of it. */
  async give(input: string): Promise<{ readonly real: string; readonly fake: string }> {
    const command = `${this.tool}-restore --noflush`;
    const [theirs, fake] = await Promise.all([real.run(command, input), this.host.run(command, input)]);
    return { real: said(theirs), fake: said(fake) };
  }

  /** Lines that one has and the other hasn't; undefined: both save the same. */
  async difference(): Promise<unknown> {
    const [one, other] = await Promise.all([real.run(`${this.tool}-save`), this.host.run(`${this.tool}-save`)]);
    return savedDifference(one.stdout, other.stdout);
  }
}

/** Everything a backend gives to restore while it comes to the showcase. */
async function inputsOf(host: IptablesFakeHost, family: IPFamily): Promise<{ readonly proxy: IptablesProxy; readonly inputs: string[] }> {
  const inputs: string[] = [];
  const recording: Exec = {
    ...host.world.exec,
    run: (file, args, options) => {
      if (file.endsWith("-restore")) inputs.push(options?.input ?? "");
      return host.world.exec.run(file, args, options);
    },
  };
  const proxy = await openProxy({ ...host.world, exec: recording }, family);
  await proxy.adopt();
  return { proxy, inputs };
}

describe("the fake does what iptables does", needs("root", "netns", "iptables>=1.8.9"), () => {
  beforeAll(() => {
    real = new RealTools(`tfakeipt-${process.pid}`);
  });
  afterAll(() => real?.close());

  it.each(BOTH)("with all that a backend and a foreign hand give it, %s %s", async (variant, family) => {
    const random = createRandom(SEED);
    const twins = await Twins.start(variant, family);
    const { proxy, inputs } = await inputsOf(twins.host, family);
    for (let step = 0; step < 4 * TIMES; step++) {
      await proxy.sync(SHOWCASE.filter(() => step === 0 || random() < 0.7));
      for (const input of inputs.splice(0)) {
        const { stderr, code } = await real.run(`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore --noflush`, input);
        expect({ input, code, stderr: withoutComments(stderr) }).toEqual({ input, code: 0, stderr: "" });
      }
      expect(await twins.difference()).toBeUndefined();
      const tampering = step % 2 === 1 ? twins.host.tamper(random) : undefined;
      if (tampering === undefined) continue;
      const [, tool = "", input = ""] = /^(\S+): (.*)$/s.exec(tampering) ?? [];
      expect(said(await real.run(`${tool} --noflush`, `${input.replaceAll("; ", "\n")}\n`))).toBe("0");
      expect({ tampering, is: await twins.difference() }).toEqual({ tampering, is: undefined });
      await proxy.adopt();
    }
  });

  it.each(BOTH)("with inputs that are broken somewhere, %s %s", async (variant, family) => {
    const random = createRandom(SEED + 1);
    const twins = await Twins.start(variant, family);
    const { proxy, inputs } = await inputsOf(twins.host, family);
    await proxy.sync(SHOWCASE);
    for (const input of inputs) await real.run(`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore --noflush`, input);
    expect(await twins.difference()).toBeUndefined();
    const corpus = inputs
      .join("")
      .split("\n")
      .filter((line) => /^[-:]/.test(line));
    for (let step = 0; step < 30 * TIMES; step++) {
      const at = Math.floor(random() * corpus.length);
      const table = pickOne(["filter", "nat", "nat"], random);
      const input = mutate(`*${table}\n${corpus.slice(at, at + 3).join("\n")}\nCOMMIT\n`, corpus, random);
      const answer = await twins.give(input);
      expect({ seed: SEED, variant, input, said: answer.fake }).toEqual({ seed: SEED, variant, input, said: answer.real });
      expect(step % 20 === 19 ? await twins.difference() : undefined).toBeUndefined();
    }
  });

  it.each(VARIANTS)("with what somebody might think of, %s", async (variant) => {
    const random = createRandom(SEED + 2);
    const twins = await Twins.start(variant, "IPv4");
    for (let step = 0; step < 60 * TIMES; step++) {
      const input = randomInput(random);
      const answer = await twins.give(input);
      expect({ seed: SEED, variant, input, said: answer.fake }).toEqual({ seed: SEED, variant, input, said: answer.real });
      expect(step % 15 === 14 ? await twins.difference() : undefined).toBeUndefined();
    }
  });

  it.each(BOTH)("with each way to write a rule, %s %s", async (variant, family) => {
    const twins = await Twins.start(variant, family);
    for (const [table, lines] of Object.entries(RULE_LINES[family])) {
      await twins.give(`*${table}\n:C - [0:0]\n:D - [0:0]\nCOMMIT\n`);
      const ruleOf = (line: string): string => `*${table}\n-A C ${line}\nCOMMIT\n`;
      const taken: string[] = [];
      const refused: { readonly line: string; readonly fake: string; readonly theirs: string }[] = [];
      for (const line of lines) {
        const command = `${twins.tool}-restore --noflush`;
        const fake = said(await twins.host.run(command, ruleOf(line)));
        if (fake === "0") taken.push(line);
        else refused.push({ line, fake, theirs: said(await real.run(command, ruleOf(line))) });
      }
      expect(refused.filter(({ fake, theirs }) => fake !== theirs)).toEqual([]);
      // Handing a table over takes the kernel a while: what is right goes in at once.
      const input = `*${table}\n${taken.map((line) => `-A C ${line}\n`).join("")}COMMIT\n`;
      expect({ input, said: said(await real.run(`${twins.tool}-restore --noflush`, input)) }).toEqual({ input, said: "0" });
    }
    expect(await twins.difference()).toBeUndefined();
  });

  it.each(BOTH)("with chains that restore lists, %s %s", async (variant, family) => {
    const twins = await Twins.start(variant, family);
    await twins.give("*nat\n:KUBE-A - [0:0]\n-A KUBE-A -p tcp -m tcp --dport 80 -j ACCEPT\n:KUBE-B - [0:0]\nCOMMIT\n");
    const inputs = [
      "*nat\n-S KUBE-B\n-S OUTPUT\n-S KUBE-A\nCOMMIT\n*filter\n-S INPUT\nCOMMIT\n",
      "*nat\n-S KUBE-A\n-S NOPE\n-S OUTPUT\nCOMMIT\n",
    ];
    const command = `${twins.tool}-restore -w 2 --noflush`;
    for (const input of inputs) {
      const [theirs, ours] = await Promise.all([real.run(command, input), twins.host.run(command, input)]);
      expect({ input, said: said(theirs), listed: theirs.stdout }).toEqual({ input, said: said(ours), listed: ours.stdout });
    }
    expect(await twins.difference()).toBeUndefined();
  });

  it("commits nothing where restore only lists", async () => {
    const reported = await real.script(
      "nft monitor & sleep 0.5; printf '*nat\\n-S OUTPUT\\nCOMMIT\\n' | iptables-nft-restore -w 2 --noflush; iptables-nft -N TOLD; sleep 0.2; kill $!",
    );
    expect(reported.match(/^-P OUTPUT ACCEPT$|^# new generation/gm)).toEqual(["-P OUTPUT ACCEPT", "# new generation"]);
  });

  it.each([
    ["legacy", "IPv4"],
    ["nft", "IPv6"],
  ] as const)("with one command at a time, %s %s", async (variant, family) => {
    const twins = await Twins.start(variant, family);
    await twins.give(
      "*filter\n:KUBE-A - [0:0]\n:KUBE-B - [0:0]\n:KUBE-C - [0:0]\n-A KUBE-A -j KUBE-B\n-A KUBE-C -p tcp --dport 80\nCOMMIT\n",
    );
    const differing: unknown[] = [];
    for (const command of COMMANDS) {
      const line = command.replace("iptables", family === "IPv4" ? `iptables-${variant}` : `ip6tables-${variant}`);
      const [theirs, ours] = await Promise.all([real.run(line, ""), twins.host.run(line, "")]);
      const texts = [theirs, ours].map((result) => `${said(result)} ${withoutComments(result.stdout)}`);
      if (texts[0] !== texts[1]) differing.push({ command, real: texts[0], fake: texts[1] });
    }
    expect(differing).toEqual([]);
    expect(await twins.difference()).toBeUndefined();
  });

  // What the fake's lists of clients are made after; /proc takes `+address` and forgets the oldest of more than a hundred.
  it.each(VARIANTS)("a list of clients lives as long as a rule names it, %s", async (variant) => {
    const rule = "-A C -m recent --name tfake --rcheck --seconds 10 --reap -j ACCEPT";
    const give = async (...lines: readonly string[]): Promise<void> => {
      const input = `*filter\n${lines.join("\n")}\nCOMMIT\n`;
      expect(said(await real.run(`iptables-${variant}-restore --noflush`, input))).toBe("0");
    };
    const inProc = (script: string): Promise<string> => real.script(`cd /proc/net/xt_recent && ${script}`);
    await give(":C - [0:0]", rule);
    await inProc("for number in $(seq 1 101); do echo +10.9.0.$number > tfake; done");
    expect(await inProc("wc -l < tfake; grep -c 'src=10.9.0.1 ' tfake; grep -c 'src=10.9.0.101 ' tfake")).toBe("100\n0\n1");
    await give(":C - [0:0]", rule);
    await give("-D C 1", rule);
    expect(await inProc("wc -l < tfake")).toBe("100");
    await give(":C - [0:0]");
    expect(await inProc("ls | grep -c tfake")).toBe("0");
  });
});
