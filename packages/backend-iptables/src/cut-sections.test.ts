import { Ledger } from "@turnout/core";
import type { ExecResult } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { cutSections, restoreInput } from "@turnout/host/iptables/text";
import type { Section } from "@turnout/host/iptables/text";
import type { IptablesObject } from "./objects.ts";
import { iptablesModule } from "./module.ts";
import { planDelta } from "./plan.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IptablesFakeHost } from "./testing/index.ts";
import { FACTS, SHOWCASE, stateOf } from "./test-support/states.ts";

const OPTIONS = iptablesModule.parseOptions({});

/** The sections that lead from one state, or nothing at all, to another, or to the same one again from what somebody left of it. */
function sectionsBetween(
  before: readonly ServiceFixture[] | undefined,
  after: readonly ServiceFixture[],
  whatIsLeft?: (object: IptablesObject) => IptablesObject,
): readonly Section[] {
  const ledger = new Ledger<IptablesObject>();
  for (const fixtures of before === undefined ? [after] : [before, after]) {
    const { rows, node } = stateOf(fixtures, "IPv4");
    const context = { node, host: FACTS };
    if (before !== undefined && fixtures === after) ledger.commit(ledger.delta(0), {});
    ledger.setAll(renderSkeleton(context, OPTIONS), new Map([...rows].map(([key, row]) => [key, renderRow(row, context, OPTIONS)])));
  }
  if (whatIsLeft !== undefined) {
    ledger.commit(ledger.delta(0), {});
    ledger.trust(new Map(Array.from(ledger.wanted(), ([id, object]) => [id, () => whatIsLeft(object)])));
  }
  return planDelta(ledger.delta(0)).steps.flatMap((step) => (step.do === "restore" ? step.sections : []));
}

const MANY = Array.from({ length: 20 }, (_, index): ServiceFixture => ({ name: `svc-${index}`, number: 1 + index, local: 5, remote: 5 }));
const CHAINS_MAX = 30;

/** A host that takes sections, one at a time: the kernel refuses jumps to chains that aren't there, and chains to go that are jumped to. */
async function hostWith(...sections: readonly Section[]): Promise<IptablesFakeHost> {
  const host = createFakeHost({ hasKubelet: false });
  for (const section of [...sectionsBetween(undefined, []), ...sections])
    expect(await restore(host, restoreInput([section]))).toMatchObject({ stderr: "" });
  return host;
}

const restore = (host: IptablesFakeHost, input: string): Promise<ExecResult> => host.run("iptables-restore --noflush", input);

/** Rules that jump to chains of rows, in the order in which they come into force. */
function jumpsOf(sections: readonly Section[]): readonly { readonly chain: string; readonly target: string }[] {
  return restoreInput(sections)
    .split("\n")
    .flatMap((line) => {
      const [, chain = "", target = ""] = /^-A (\S+) .*-j (\S+)/.exec(line) ?? [];
      return chain === "" ? [] : [{ chain, target }];
    });
}

describe("cutSections", () => {
  it("leaves a change of the usual size as it is", () => {
    const sections = sectionsBetween([], SHOWCASE);
    expect(cutSections(sections)).toBe(sections);
  });

  it("loads many new chains ahead, few to a section, and ends with the very same rules", async () => {
    const sections = sectionsBetween([], MANY);
    const cut = cutSections(sections, CHAINS_MAX);
    expect(cut.length).toBeGreaterThan(sections.length + 3);
    expect(Math.max(...cut.map(({ fresh }) => fresh.length))).toBeLessThanOrEqual(CHAINS_MAX);
    // What leads to them comes with the sections that were there before.
    const ahead = cut.slice(0, cut.length - sections.length);
    expect(restoreInput(ahead)).not.toContain("KUBE-SERVICES");
    expect((await hostWith(...cut)).own()).toEqual((await hostWith(...sections)).own());
  });

  it("fills many chains that somebody emptied ahead, few to a section, and no half of what others jump to", async () => {
    const sections = sectionsBetween([], MANY, (object) => (object.kind === "chain" ? { ...object, value: "" } : object));
    const cut = cutSections(sections, CHAINS_MAX);
    expect(Math.max(...cut.map(({ fresh, declared }) => fresh.length + declared.length))).toBeLessThanOrEqual(CHAINS_MAX);
    const onEmptied = async (given: readonly Section[]): Promise<readonly string[]> => {
      const host = await hostWith(...sectionsBetween([], MANY));
      const { stdout } = await host.run("iptables-save -t nat");
      const emptied = `*nat\n${(stdout.match(/^:KUBE-.*$/gm) ?? []).join("\n")}\nCOMMIT\n`;
      for (const input of [emptied, ...given.map((one) => restoreInput([one]))])
        expect(await restore(host, input)).toMatchObject({ stderr: "" });
      return host.own();
    };
    expect(await onEmptied(cut)).toEqual(await onEmptied(sections));
    const filled = new Set(["KUBE-MARK-MASQ"]);
    const early = jumpsOf(cut).filter(({ chain, target }) => {
      filled.add(chain);
      return chain.startsWith("KUBE-SVC-") && !filled.has(target);
    });
    expect(early).toEqual([]);
    expect(filled.size).toBeGreaterThan(100);
  });

  it("deletes many chains behind, those that jump to others first", async () => {
    const sections = sectionsBetween(MANY, []);
    const cut = cutSections(sections, CHAINS_MAX);
    expect(cut.length).toBeGreaterThan(sections.length + 3);
    expect((await hostWith(...sectionsBetween([], MANY), ...cut)).own()).toEqual((await hostWith()).own());
  });
});
