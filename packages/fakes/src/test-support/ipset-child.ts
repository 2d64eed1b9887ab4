// Run by ipset/ipset-kernel.test.ts in a network namespace of its own; prints what it saw as JSON.
import { spawnSync } from "node:child_process";
import { ProxyError } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { createRandom, pickOne } from "@turnout/core/testing";
import { FaultSwitches } from "@turnout/conformance";
import { createExec, createNetlink } from "@turnout/host";
import { IpsetTool, ipsetError, refusedLine } from "@turnout/host/ipset";

import { FakeIpset } from "../ipset/fake-ipset.ts";
import { ONE_BY_ONE, randomInput } from "./ipset-inputs.ts";

const never = new AbortController().signal;
const exec = createExec();

function messageOf(error: unknown): string {
  return ProxyError.is(error) ? error.message : String(error);
}

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function real(args: string, input: string = ""): Said {
  const { status, stdout, stderr } = spawnSync("ipset", args.split(" "), { encoding: "utf8", input, env: { ...process.env, LC_ALL: "C" } });
  return { code: status, stdout, stderr };
}

/** What both must say: of a complaint what Turnout reads; hashes have no order, and sizes and seeds are the kernel's. */
function comparable({ code, stdout, stderr }: Said): string {
  const lines = stdout.replaceAll(/ hashsize \d+| bucketsize \d+| initval \S+/g, "").split("\n");
  const { number, isAfterAll } = refusedLine(stderr) ?? {};
  return [`${code}`, `${number} ${isAfterAll} ${ipsetError(stderr, "").code}`, ...lines.toSorted()].join("\n").trim();
}

/** Give both the same and say where they differ. */
function differences(inputs: Iterable<readonly [args: string, input: string]>): readonly unknown[] {
  const isNamed = (): boolean => false;
  const fake = new FakeIpset({ faults: new FaultSwitches(), isNamed });
  real("destroy");
  const found: unknown[] = [];
  for (const [args, input] of inputs) {
    const [theirs, ours] = [comparable(real(args, input)), comparable(fake.run(args, input))];
    const [theirSets, ourSets] = [comparable(real("save")), comparable(fake.run("save"))];
    if (theirs !== ours) found.push({ args, input, real: theirs, fake: ours });
    else if (theirSets !== ourSets)
      found.push({ args, input, onlyReal: without(theirSets, ourSets), onlyFake: without(ourSets, theirSets) });
    if (found.length > 5) break;
  }
  return found;
}

function without(text: string, other: string): readonly string[] {
  const known = new Set(other.split("\n"));
  return text.split("\n").filter((line) => !known.has(line));
}

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async tool() {
    const tool = new IpsetTool(exec);
    const said = async (...lines: readonly string[]): Promise<readonly (string | undefined)[]> =>
      (await tool.restore(lines, never)).map((error) => error?.message);
    real("create FOREIGN hash:net counters comment");
    const before = Object.fromEntries(await tool.save(["A", "B"], never));
    const first = await said(
      "create A hash:ip,port family inet maxelem 1048576",
      "create B hash:ip,port,net family inet6 maxelem 1048576",
      "create FULL hash:ip family inet maxelem 2",
      "create P bitmap:port range 0-65535",
      "add A 10.96.0.10,tcp:80",
      "add A 10.96.0.10,tcp:80",
      "add B fd00::1,tcp:80,::1.2.3.4",
      "add B fd00::1,tcp:80,::/0",
      "add B fd00::1,tcp:80,::/1",
      "add NOPE 10.96.0.10,tcp:80",
      "add FULL 1.1.1.1",
      "add FULL 1.1.1.2",
      "add FULL 1.1.1.3",
      "add FULL 0.0.0.0",
      "del A 9.9.9.9,tcp:1",
      "create A hash:ip,port family inet maxelem 7",
      "create A hash:ip,port family inet maxelem 1048576",
      "destroy NOPE",
      "add P 30080",
    );
    const sets = Object.fromEntries(
      Array.from(await tool.save(["P", "NOPE", "B", "A"], never), ([name, set]) => [name, { ...set, entries: set.entries.toSorted() }]),
    );
    const netlink = createNetlink({ clock: systemClock() });
    const sizes = Object.fromEntries(await netlink.setSizes(["P", "NOPE", "B", "FULL"]));
    netlink.close();
    const swapped = await said("create A2 hash:ip,port family inet maxelem 1048576", "add A2 1.1.1.1,udp:1", "swap A A2", "destroy A2");
    const after = Object.fromEntries(await tool.save(["A", "A2"], never));
    const slip = await said("add A 1.1.1.2,udp:2", "add A 1.1.1.3", "add A 1.1.1.4,udp:4");
    const portless = await tool.restore(["add A 1.1.1.5,udp:2", "add A 1.1.1.3,udp:x"], never).catch(messageOf);
    const hopeless = Array.from({ length: 150 }, () => "add NOPE 1.1.1.1");
    const many = await tool.restore([...hopeless, "add A 1.1.1.6,udp:6"], never);
    const kept = [...((await tool.save(["A"], never)).get("A")?.entries ?? [])].toSorted();
    const names = (await tool.names(never)).toSorted();
    const codes = many.reduce<Record<string, number>>(
      (sum, error) => ({ ...sum, [error?.code ?? "ok"]: (sum[error?.code ?? "ok"] ?? 0) + 1 }),
      {},
    );
    return {
      before,
      first,
      sets,
      sizes,
      swapped,
      after,
      slip,
      portless,
      kept,
      codes,
      names,
      version: /^\d+\.\d+$/.test(await tool.version(never)),
    };
  },

  async refused() {
    const tool = new IpsetTool(exec);
    return Promise.all([tool.save(["A"], never).catch(messageOf), tool.restore(["create A hash:ip"], never).catch(messageOf)]);
  },

  async oneByOne() {
    return differences(ONE_BY_ONE);
  },

  async random() {
    const random = createRandom(Number(process.argv[3]));
    const inputs = Array.from({ length: 150 }, (): readonly [string, string] => [
      pickOne(["restore", "restore -exist"], random),
      randomInput(random),
    ]);
    return differences(inputs);
  },
};

const scenario = scenarios[process.argv[2] ?? ""];
if (scenario === undefined) throw new Error(`no scenario "${process.argv[2]}"`);
process.stdout.write(JSON.stringify(await scenario()));
