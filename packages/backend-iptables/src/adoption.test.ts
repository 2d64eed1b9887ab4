import { objectId } from "@turnout/core";
import { TestClock } from "@turnout/core/testing";
import type { Delta, Exec, ExecResult, IPFamily } from "@turnout/core";
import type { LinuxWorld } from "@turnout/host";
import { MARKER_CHAIN } from "@turnout/host/iptables/text";
import { createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import { describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import type { IptablesObject } from "./objects.ts";
import { adoptionOf, optionsOf, recordedCases, recordedSave, stateOf } from "./test-support/recorded-cases.ts";
import type { RecordedCase } from "./test-support/recorded-cases.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const COUNTED = / -m nfacct --nfacct-name {2}\w+/;
const { signal } = new AbortController();

/** A host on which iptables-save prints what it printed under kube-proxy. */
function recordedHost(saved: string): Exec {
  const result = (stdout: string): Promise<ExecResult> => Promise.resolve({ code: 0, stdout, stderr: "" });
  return {
    run: (file, args) => {
      if (args[0] === "-V") return result(`${file} v1.8.9 (nf_tables)\n`);
      // kube-proxy had set it.
      if (file === "sysctl") return result("1\n");
      const at = args.indexOf("-S");
      if (at >= 0) return result(`-N ${args[at + 1]}\n`);
      if (file.endsWith("-save") && args.length === 0) return result(saved);
      throw new Error(`looking must not run ${file} ${args.join(" ")}`);
    },
    open: (file) => {
      throw new Error(`looking must not start ${file}`);
    },
  };
}

/** A kernel on which kube-proxy made its counters. */
const COUNTING = { ...createFakeNetlink(), counterPackets: () => Promise.resolve(0) };

async function deltaOf(
  one: RecordedCase,
  family: IPFamily,
  saved: string = recordedSave(one, family),
  counts = true,
): Promise<Delta<IptablesObject>> {
  const netlink = counts ? COUNTING : createFakeNetlink();
  const world: LinuxWorld = { exec: recordedHost(saved), clock: new TestClock(0), netlink, log: createFakeLog() };
  const options = iptablesModule.parseOptions({ variant: "nft", ...optionsOf(one) });
  return await adoptionOf((await iptablesModule.open(options, world, signal)).family(family), stateOf(one, family, counts));
}

/** From then on the chains count as ours. */
const MARKED = "our marker comes";

/** A difference in a word, if it is one that docs/backends/iptables.md lists; else what it is. */
function inWords({ put, remove }: Delta<IptablesObject>): readonly string[] {
  const words = new Map<string, number>();
  const say = (word: string): void => void words.set(word, (words.get(word) ?? 0) + 1);
  for (const object of remove) {
    say(`goes: ${objectId(object)}`);
  }
  for (const { before, after } of put) {
    const [was, is] = [before?.value, after.value].map((value) => (typeof value === "string" ? value : ""));
    if (after.key.startsWith("nat KUBE-FW-") && sortedLines(was) === sortedLines(is)) say("source ranges are sorted");
    else if (after.kind === "guard" && before === undefined) say("guard comes");
    else if (objectId(after) === `chain nat ${MARKER_CHAIN}` && before === undefined) say(MARKED);
    else say(`${before === undefined ? "comes" : "changes"}: ${objectId(after)}`);
  }
  return Array.from(words, ([word, count]) => (count === 1 ? word : `${word} (${count})`)).toSorted();
}

function sortedLines(text: string | undefined): string {
  return text?.split("\n").toSorted().join("\n") ?? "";
}

/** What each recording differs in from what we would write; all others do not differ at all. Besides, our marker comes. */
const DIFFERENCES: Readonly<Record<string, readonly string[]>> = {
  "everything IPv4": ["source ranges are sorted"],
  "node-port-addresses IPv4": ["guard comes"],
};

describe.each(FAMILIES)("adopting what the real kube-proxy wrote, %s", (family) => {
  it.each(recordedCases())("$name", async (one) => {
    expect(inWords(await deltaOf(one, family))).toEqual([...(DIFFERENCES[`${one.name} ${family}`] ?? []), MARKED].toSorted());
  });

  it("changes no meaning where the kernel can't count", async () => {
    const [everything] = recordedCases();
    if (everything === undefined) throw new Error("there are recordings");
    const lines = recordedSave(everything, family).split("\n");
    const kept = lines.filter((line) => !line.startsWith("-A KUBE-NODEPORTS -d 127.0.0.0/8 "));
    const uncounted = kept.join("\n").replaceAll(new RegExp(COUNTED, "g"), "");
    expect(inWords(await deltaOf(everything, family, uncounted, false))).toEqual(
      family === "IPv4" ? [MARKED, "source ranges are sorted"] : [MARKED],
    );
  });
});
