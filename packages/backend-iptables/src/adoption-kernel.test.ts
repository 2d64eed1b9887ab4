import type { IPFamily } from "@turnout/core";
import { MARKER_CHAIN } from "@turnout/host/iptables/text";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { adoptionOf, optionsOf, recordedCases, recordedSave, stateOf } from "./test-support/recorded-cases.ts";
import type { RecordedCase } from "./test-support/recorded-cases.ts";

const MARKED = `nat :${MARKER_CHAIN}`;
/** Of the documented differences one shows here, and only where a Service has two source ranges of the family: they are sorted. */
const CASES: readonly (readonly [IPFamily, "legacy" | "nft", readonly string[]])[] = [
  ["IPv4", "legacy", ["nat KUBE-FW"]],
  ["IPv4", "nft", ["nat KUBE-FW"]],
  ["IPv6", "legacy", []],
  ["IPv6", "nft", []],
];
const { signal } = new AbortController();

let namespace: TestNamespace;

const tool = (file: string, args: readonly string[], input?: string): Promise<string> => namespace.run(file, args, input);

/** As a kernel that can't count for nfacct has it: such rules are not there, or lack the match. */
function uncounted(saved: string): string {
  const kept = saved.split("\n").filter((line) => !line.startsWith("-A KUBE-NODEPORTS -d 127.0.0.0/8 "));
  return kept.join("\n").replaceAll(/ -m nfacct --nfacct-name {2}\w+/g, "");
}

/** Our chains and every rule with its table, in an order that doesn't depend on how they came there. */
function linesOf(saved: string): readonly string[] {
  let table = "";
  const lines: string[] = [];
  for (const line of saved.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    else if (line.startsWith("-A ")) lines.push(`${table} ${line}`);
    else if (line.startsWith(":KUBE-")) lines.push(`${table} ${line.slice(0, line.indexOf(" "))}`);
  }
  return lines.toSorted();
}

describe("what the real kube-proxy wrote, in a real kernel", needs("root", "netns", "iptables-legacy", "iptables-nft"), () => {
  const recorded = recordedCases().find(({ name }) => name === "everything");
  const everything: RecordedCase = recorded ?? { name: "everything", set: "everything", fields: {} };
  beforeEach(() => {
    namespace = createTestNamespace("tiptadopt");
  });
  afterEach(() => namespace.remove());

  it.each(CASES)(
    "is left alone by a cleanup, is adopted with our marker alone written, and is what we write ourselves: %s, %s",
    async (family, variant, changes) => {
      const name = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
      const theirs = uncounted(recordedSave(everything, family));
      // The lock is the machine's, not the namespace's: other tests may hold it.
      await tool(`${name}-restore`, ["-w", "30"], theirs);
      await tool("sysctl", ["-q", "-w", "net.ipv4.conf.all.route_localnet=1"]);
      const before = await tool(`${name}-save`, []);

      const options = iptablesModule.parseOptions({ variant, ...optionsOf(everything) });
      const backend = (await iptablesModule.open(options, namespace.world, signal)).family(family);
      await backend.cleanup?.(signal);
      expect(linesOf(await tool(`${name}-save`, []))).toEqual(linesOf(before));
      const adopted = await adoptionOf(backend, stateOf(everything, family, false));
      expect(adopted.put.map(({ after }) => after.key.replace(/-[A-Z2-7]{16}$/, "")).toSorted()).toEqual(
        [...changes, `nat ${MARKER_CHAIN}`].toSorted(),
      );
      expect(adopted.remove).toEqual([]);
      await backend.apply(backend.plan(adopted), signal);
      expect(linesOf(await tool(`${name}-save`, []))).toEqual([...linesOf(before), MARKED].toSorted());

      await backend.cleanup?.(signal);
      const fresh = await adoptionOf(backend, stateOf(everything, family, false));
      await backend.apply(backend.plan(fresh), signal);
      const left = linesOf(await tool(`${name}-save`, []));
      // kube-proxy makes kubelet's chain in IPv6 too, where there is nothing to guard; cleaning up leaves it.
      expect(left).toEqual([...linesOf(before), MARKED].toSorted());
    },
  );
});
