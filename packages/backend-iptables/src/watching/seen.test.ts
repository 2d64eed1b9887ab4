import { OwnCommits } from "@turnout/host";
import type { NftChange } from "@turnout/host";
import { describe, expect, it } from "vitest";
import { seeChains, touchedChains } from "./seen.ts";

const change = (kind: NftChange["kind"], verb: NftChange["verb"], name: string, table = "ip nat"): NftChange => ({
  table,
  verb,
  kind,
  name,
  keys: [],
});
const CHAIN = "KUBE-SVC-AAAAAAAAAAAAAAAA";
const touched = (...changes: readonly NftChange[]): NonNullable<ReturnType<typeof touchedChains>> =>
  touchedChains(changes, "IPv4") ?? new Map();

describe("chains that a commit touched", () => {
  it.each([
    ["a row's", change("rule", "deleted", CHAIN), { table: "nat", chain: CHAIN, fate: "robbed" }],
    ["a row's that got one", change("rule", "made", CHAIN), { table: "nat", chain: CHAIN, fate: "changed" }],
    ["a row's that went", change("chain", "deleted", CHAIN), { table: "nat", chain: CHAIN, fate: "gone" }],
    ["a shared one", change("rule", "made", "KUBE-SERVICES", "ip filter"), { table: "filter", chain: "KUBE-SERVICES", fate: "changed" }],
    ["one that leads to ours", change("rule", "deleted", "PREROUTING"), { table: "nat", chain: "PREROUTING", fate: "robbed" }],
  ])("%s", (_name, done, chain) => {
    expect([...touched(done).values()]).toEqual([chain]);
  });

  it.each([
    ["robbed twice", "robbed", [change("rule", "deleted", CHAIN), change("rule", "deleted", CHAIN)]],
    ["with a rule replaced", "changed", [change("rule", "deleted", CHAIN), change("rule", "made", CHAIN)]],
    ["that got a rule before it was robbed", "changed", [change("rule", "made", CHAIN), change("rule", "deleted", CHAIN)]],
    ["flushed and deleted", "gone", [change("rule", "deleted", CHAIN), change("chain", "deleted", CHAIN)]],
    [
      "deleted and made again",
      "changed",
      [change("chain", "deleted", CHAIN), change("chain", "made", CHAIN), change("rule", "made", CHAIN)],
    ],
  ] as const)("one %s", (_name, fate, done) => {
    expect([...touched(...done).values()].map((one) => one.fate)).toEqual([fate]);
  });

  it.each([
    ["a CNI plugin's", change("rule", "made", "CNI-HOSTPORT-DNAT")],
    ["other tables'", change("rule", "deleted", "PREROUTING", "ip raw")],
    ["the other family's", change("rule", "deleted", "KUBE-SERVICES", "ip6 nat")],
  ])("none of %s", (_name, done) => {
    expect(touched(done)).toEqual(new Map());
  });

  it("can't be told of too much, or of a table that went", () => {
    expect([touchedChains(undefined, "IPv4"), touchedChains([change("table", "deleted", "")], "IPv4")]).toEqual([undefined, undefined]);
  });
});

describe("what is seen of them", () => {
  const sight = (chains: Readonly<Record<string, string>>, saved = ""): Parameters<typeof seeChains>[1] => ({
    tool: { listChain: (_table, chain) => Promise.resolve(chains[chain]), save: () => Promise.resolve(saved) },
    own: new OwnCommits(),
    family: "IPv4",
    hasGuard: false,
  });
  const never = new AbortController().signal;

  it("their rules, as a listing of everything would have them, and that one is gone", async () => {
    const chains = {
      [CHAIN]: `-N ${CHAIN}\n-A ${CHAIN} -j KUBE-SEP-AAAAAAAAAAAAAAAA\n`,
      PREROUTING: "-P PREROUTING ACCEPT\n-A PREROUTING -j FOREIGN\n",
    };
    const done = [change("rule", "made", CHAIN), change("rule", "deleted", "PREROUTING"), change("rule", "deleted", "KUBE-NODEPORTS")];
    const { covers, objects, isCurrent } = await seeChains(touched(...done), sight(chains), never);
    expect([...objects.values()].map(({ kind, key, value }) => [kind, key, value])).toEqual([
      ["chain", `nat ${CHAIN}`, "-j KUBE-SEP-AAAAAAAAAAAAAAAA"],
    ]);
    const covered = (kind: string, key: string): boolean => covers({ kind, key, value: "" });
    expect([covered("rule", "nat KUBE-NODEPORTS -p tcp"), covered("jumps", "nat PREROUTING"), covered("chain", `nat ${CHAIN}`)]).toEqual([
      true,
      true,
      true,
    ]);
    expect([
      covered("chain", "nat KUBE-SERVICES"),
      covered("shared", "filter KUBE-NODEPORTS"),
      covered("sysctl", "nat KUBE-NODEPORTS"),
    ]).toEqual([false, false, false]);
    expect(isCurrent()).toBe(true);
  });

  it("nothing is read of a row's chain that only lost rules, however many: it counts as empty", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `KUBE-SVC-${String(index).padStart(16, "A")}`);
    const read: string[] = [];
    const listChain = (_table: string, chain: string): Promise<string> => Promise.resolve(String(read.push(chain)));
    const save = (table: string): Promise<string> => Promise.resolve(String(read.push(table)));
    const done = [...names, "KUBE-SERVICES"].map((name) => change("rule", "deleted", name));
    const { objects } = await seeChains(touched(...done), { ...sight({}), tool: { listChain, save } }, never);
    expect(read).toEqual(["KUBE-SERVICES"]);
    expect([...objects.values()]).toEqual(names.map((name) => ({ kind: "chain", key: `nat ${name}`, value: "" })));
  });

  it("of very many the table is read at once, and in it only what was touched", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `KUBE-SVC-${String(index).padStart(16, "A")}`);
    const saved = [
      "*nat",
      ...[...names, CHAIN].map((name) => `:${name} - [0:0]`),
      `-A ${CHAIN} -j KUBE-SEP-AAAAAAAAAAAAAAAA`,
      "COMMIT",
    ].join("\n");
    const { objects } = await seeChains(touched(...names.map((name) => change("rule", "made", name))), sight({}, saved), never);
    const values = [...objects.values()].map(({ value }) => value);
    expect([values.length, new Set(values)]).toEqual([100, new Set([""])]);
  });
});
