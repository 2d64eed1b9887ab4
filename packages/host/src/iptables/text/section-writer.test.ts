import { describe, expect, it } from "vitest";
import { cutSections } from "./cut-sections.ts";
import { MISPLACED, placeOf } from "./objects.ts";
import type { ChainObject } from "./objects.ts";
import { SectionWriter } from "./section-writer.ts";
import { deletionsOf, restoreInput } from "./section.ts";

const ORDER = ["SEP-", "SVC-", "ALL"];

function chain(key: string, ...rules: readonly string[]): ChainObject {
  return { kind: "chain", key, value: rules.join("\n") };
}

function written(fill: (writer: SectionWriter) => void): readonly string[] {
  const writer = new SectionWriter("nat", ORDER);
  fill(writer);
  return restoreInput(writer.finish()).split("\n").slice(0, -1);
}

describe("SectionWriter", () => {
  it("gives no section when nothing is to be done", () => {
    expect(new SectionWriter("nat", ORDER).finish()).toEqual([]);
  });

  it("makes chains before those that jump to them, and deletes them after those", () => {
    const lines = written((writer) => {
      writer.writeChain(chain("nat SVC-A", "-j SEP-A"), undefined);
      writer.writeChain(chain("nat SEP-A", "-j DNAT --to-destination 10.1.1.1:80"), undefined);
      writer.dropChain(chain("nat SEP-B", "-j ACCEPT"));
      writer.dropChain(chain("nat SVC-B", "-j SEP-B"));
    });
    expect(lines).toEqual([
      "*nat",
      ":SVC-A - [0:0]",
      ":SEP-A - [0:0]",
      ":SVC-B - [0:0]",
      ":SEP-B - [0:0]",
      "-A SEP-A -j DNAT --to-destination 10.1.1.1:80",
      "-A SVC-A -j SEP-A",
      "-X SVC-B",
      "-X SEP-B",
      "COMMIT",
    ]);
  });

  it("names new chains by falling names, whatever they jump to", () => {
    const lines = written((writer) => {
      for (const key of ["nat SVC-B", "nat SEP-A", "nat SEP-C", "nat SVC-D"]) writer.writeChain(chain(key, "-j ACCEPT"), undefined);
    });
    expect(lines.filter((line) => line.startsWith(":"))).toEqual([":SVC-D - [0:0]", ":SVC-B - [0:0]", ":SEP-C - [0:0]", ":SEP-A - [0:0]"]);
    expect(lines.find((line) => line.startsWith("-A"))).toContain("SEP-A");
  });

  it("replaces a chain's rules, and a shared chain's tail, rule by rule, but for the mark of a tail that isn't last", () => {
    const lines = written((writer) => {
      writer.writeChain(chain("nat SVC-A", "-j SEP-B"), "-j SEP-A");
      writer.writeShared("nat ALL", "-j NODEPORTS", `${MISPLACED}\n-j OLD`);
    });
    expect(lines).toEqual(["*nat", ":SVC-A - [0:0]", "-A SVC-A -j SEP-B", "-D ALL -j OLD", "-A ALL -j NODEPORTS", "COMMIT"]);
  });

  it("puts jumps at the head in their order, after the old ones are gone", () => {
    const lines = written((writer) => writer.writeJumps("OUTPUT", ["-j FIRST", "-j SECOND"], ["-j SECOND"]));
    expect(lines).toEqual(["*nat", "-D OUTPUT -j SECOND", "-I OUTPUT -j SECOND", "-I OUTPUT -j FIRST", "COMMIT"]);
  });

  it("puts rules in before others go, a copy at a time, and counts them", () => {
    const writer = new SectionWriter("nat", ORDER);
    writer.insertRule("nat ALL -d 10.96.0.1/32 -j SVC-A");
    writer.deleteRule("nat ALL -d 10.96.0.2/32 -j SVC-B", 2);
    const sections = writer.finish();
    expect(restoreInput(sections)).toBe(
      "*nat\n-I ALL -d 10.96.0.1/32 -j SVC-A\n-D ALL -d 10.96.0.2/32 -j SVC-B\n-D ALL -d 10.96.0.2/32 -j SVC-B\nCOMMIT\n",
    );
    expect(sections).toMatchObject([{ written: 1, growth: -1 }]);
  });
});

it("cutSections leaves the table of a section as it is", () => {
  const writer = new SectionWriter("filter", ORDER);
  for (const name of ["SVC-A", "SVC-B", "SVC-C"]) writer.writeChain(chain(`filter ${name}`), undefined);
  const cut = cutSections(writer.finish(), 2);
  expect(cut.map(({ table, fresh }) => [table, fresh.length])).toEqual([
    ["filter", 2],
    ["filter", 1],
    ["filter", 0],
  ]);
});

it("deletionsOf makes a section for each table", () => {
  const sections = deletionsOf([chain("filter A"), chain("nat B"), chain("nat C")]);
  expect(sections.map(({ table, dead }) => [table, dead.map((object) => placeOf(object).chain)])).toEqual([
    ["nat", ["B", "C"]],
    ["filter", ["A"]],
  ]);
});
