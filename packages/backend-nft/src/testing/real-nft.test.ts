import { FAMILIES, ProxyError } from "@turnout/core";
import { OwnCommits } from "@turnout/host";
import type { Exec, IPFamily } from "@turnout/core";
import { createRandom, pickOne, SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NftSession } from "@turnout/host/nft";
import { goTo, nftStatementText, payload, vmap } from "@turnout/host/nft-statement";
import type { NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import { createFakeLog, createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { Commands } from "../test-support/commands.ts";
import { EXTERNAL_RULESET } from "./external-ruleset.ts";
import { createFakeHost } from "./index.ts";
import type { NftFakeHost } from "./index.ts";
import { contentOf, differenceOf } from "../test-support/listed-content.ts";
import { mutate, randomStatement } from "../test-support/random-transactions.ts";
import { openProxy } from "../test-support/states.ts";
import type { NftProxy } from "../test-support/states.ts";

/** TURNOUT_SEED=n tries other transactions than CI does. */
const SEED = Number(process.env["TURNOUT_SEED"] ?? 1);
const { signal } = new AbortController();

/** The real nft in its namespace and the fake, which are given the same and must do the same. */
class Twins {
  readonly #exec: Exec;
  readonly #real: NftSession;
  host: NftFakeHost = createFakeHost();
  #fake = new NftSession({ ...this.host.world, own: new OwnCommits(), table: "ip t" }, "nft");
  #sinceEqual: string[] = [];

  constructor(exec: Exec) {
    this.#exec = exec;
    this.#real = new NftSession({ exec, log: createFakeLog(), own: new OwnCommits(), table: "ip t" }, "nft");
  }

  /** Begin anew, both with the same statements and nothing else. */
  async start(statements: readonly NftStatement[] = []): Promise<void> {
    this.host = createFakeHost();
    this.host.nft({ flush: { ruleset: null } });
    this.#fake = new NftSession({ ...this.host.world, own: new OwnCommits(), table: "ip t" }, "nft");
    await this.#exec.run("nft", ["flush", "ruleset"]);
    this.#sinceEqual = [];
    if (statements.length > 0) await this.give(statements);
  }

  /** Give both one transaction: `done`, or the kind of error, for each. */
  async give(statements: readonly NftStatement[]): Promise<{ readonly real: string; readonly fake: string }> {
    const real = await this.giveReal(statements);
    return { real, fake: await outcomeOf(this.#fake, statements) };
  }

  /** Give the real one what the fake has been given already. */
  async giveReal(statements: readonly NftStatement[]): Promise<string> {
    const outcome = await outcomeOf(this.#real, statements);
    this.#sinceEqual.push(`${outcome}: ${statements.map(nftStatementText).join("; ").slice(0, 1_000)}`);
    return outcome;
  }

  /** What the two hold that differs, and what they were given since they were last equal; undefined: they are. */
  async difference(withHandles: boolean = false): Promise<unknown> {
    const { stdout } = await this.#exec.run("nft", ["-j", "list", "ruleset"]);
    const found = differenceOf(contentOf(stdout, { withHandles }), contentOf(this.host.list(), { withHandles }));
    const given = this.#sinceEqual;
    this.#sinceEqual = [];
    return found === undefined ? undefined : { seed: SEED, given, ...found };
  }

  close(): void {
    this.#real.close();
  }
}

async function outcomeOf(session: NftSession, statements: readonly NftStatement[]): Promise<string> {
  try {
    await session.commit(statements, signal);
    return "done";
  } catch (error) {
    if (ProxyError.is(error)) return error.code;
    throw error;
  }
}

function randomFixtures(random: () => number): readonly ServiceFixture[] {
  const upTo = (count: number): number => Math.floor(random() * count);
  return [1, 2, 3, 4, 5].flatMap((number) => {
    if (random() < 0.4) return [];
    const isBalanced = random() < 0.4;
    const spec = {
      type: isBalanced ? "LoadBalancer" : "ClusterIP",
      ...(isBalanced ? { nodePort: 30_000 + number, externalTrafficPolicy: random() < 0.5 ? "Local" : "Cluster" } : {}),
      ...(isBalanced && random() < 0.5 ? { loadBalancerSourceRanges: [`203.0.${number}.0/24`, "10.0.0.0/8"] } : {}),
      ...(random() < 0.4 ? { sessionAffinity: "ClientIP" } : {}),
    };
    const loadBalancerIPs = isBalanced ? [`198.51.100.${number}`, `fd00:198::${number}`] : [];
    const protocol = pickOne(["TCP", "UDP", "SCTP"], random);
    return [{ name: `svc-${number}`, number, protocol, local: upTo(4), remote: upTo(4), loadBalancerIPs, spec }];
  });
}

const t = new Commands("t");
const TABLE: NftStatement = { add: t.table() };
const MAP: readonly NftStatement[] = [TABLE, { add: t.map("m", { type: "inet_service", map: "verdict" }) }];
const ASK_MAP = vmap(payload("tcp", "dport"), "@m");
const SMALL: readonly NftStatement[] = [TABLE, { add: t.set("s", { type: "mark", size: 2 }) }];
const jump = (target: string): NftRuleStatement => ({ jump: { target } });

/** A base chain, and chains `c1` to `cN` that jump to each other in a row. */
function jumps(count: number): readonly NftStatement[] {
  const names = ["base", ...Array.from({ length: count }, (_, index) => `c${index + 1}`)];
  return [
    TABLE,
    { add: t.hooked("base", "input", 0) },
    ...names.slice(1).map((name) => ({ add: t.chain(name) })),
    ...names.slice(1).map((name, index) => t.rule(names[index] ?? "", jump(name))),
  ];
}

/** A rule with a comment of so many bytes. */
function commented(bytes: number): NftStatement {
  return { add: { rule: { family: "ip", table: "t", chain: "c1", expr: [{ drop: null }], comment: "x".repeat(bytes) } } };
}

/** Sync to a state; resolves to the statements of the plan, a list for each transaction. */
async function statementsTo(fixtures: readonly ServiceFixture[], proxy: NftProxy): Promise<readonly (readonly NftStatement[])[]> {
  proxy.want(fixtures);
  const { steps } = proxy.plan();
  await proxy.sync();
  return steps.map(({ statements }) => statements);
}

/** All statements that lead to the showcase, as one list. */
async function showcaseStatements(family: IPFamily): Promise<readonly NftStatement[]> {
  return (await statementsTo(SHOWCASE, await openProxy(createFakeHost().world, family))).flat();
}

describe("the fake does what nft does", needs("root", "netns", "nft>=1.0.6"), () => {
  let namespace: TestNamespace;
  let twins: Twins;
  beforeAll(() => {
    namespace = createTestNamespace("tfake");
    twins = new Twins(namespace.exec);
  });
  afterAll(() => {
    twins?.close();
    namespace?.remove();
  });
  beforeEach(() => twins.start());

  it.each(FAMILIES)("with all that a backend's history of changes and a foreign hand give it, %s", async (family) => {
    const random = createRandom(SEED);
    const proxy = await openProxy(twins.host.world, family);
    for (let step = 0; step < 25; step++) {
      const transactions = [...(await statementsTo(step === 0 ? SHOWCASE : randomFixtures(random), proxy))];
      await twins.host.advance(700);
      const tampering = step % 3 === 2 ? twins.host.tamperWith(random) : undefined;
      if (tampering !== undefined) transactions.push(tampering);
      for (const statements of transactions)
        expect({ statements, real: await twins.giveReal(statements) }).toEqual({ statements, real: "done" });
      if (tampering !== undefined) await proxy.adopt();
      expect(await twins.difference(true)).toBeUndefined();
    }
  });

  it("with other people's tables", async () => {
    await twins.start(EXTERNAL_RULESET);
    expect(JSON.parse(twins.host.list())).toHaveProperty("nftables.length", 33);
    expect(await twins.difference(true)).toBeUndefined();
  });

  // Both take it, or both refuse it. Why may differ: nft names all it has against a transaction, the fake one thing.
  it.each(FAMILIES)("with transactions that are broken somewhere, %s", async (family) => {
    const random = createRandom(SEED + 1);
    const corpus = await showcaseStatements(family);
    await twins.start(corpus);
    for (let step = 0; step < 300; step++) {
      const at = Math.floor(random() * corpus.length);
      const statements = mutate(corpus.slice(at, at + 1 + Math.floor(random() * 3)), corpus, random);
      if (statements.length === 0) continue;
      const { real, fake } = await twins.give(statements);
      const text = statements.map(nftStatementText);
      expect({ seed: SEED, text, isDone: fake === "done" }).toEqual({ seed: SEED, text, isDone: real === "done" });
      expect(step % 20 === 19 ? await twins.difference() : undefined).toBeUndefined();
    }
  });

  it.each<[string, readonly NftStatement[], "done" | "refused"]>([
    ["fifteen jumps deep", jumps(15), "done"],
    ["sixteen jumps deep", jumps(16), "refused"],
    ["a loop", [...jumps(3), t.rule("c3", goTo("c1"))], "refused"],
    ["a loop that no packet gets into", [TABLE, { add: t.chain("a") }, t.rule("a", goTo("a"))], "done"],
    ["a loop by way of a map", [...jumps(2), ...MAP, t.rule("c2", ASK_MAP), t.elements("add", "m", ["5", "jump c1"])], "refused"],
    [
      "a statement out of place by way of a map",
      [
        ...jumps(2),
        ...MAP,
        t.rule("c2", ASK_MAP),
        { add: t.chain("n") },
        t.rule("n", { masquerade: null }),
        t.elements("add", "m", ["5", "jump n"]),
      ],
      "refused",
    ],
    ["a chain deleted with the last rule that goes there", [...jumps(2), { flush: t.chain("c1") }, { delete: t.chain("c2") }], "done"],
    [
      "a chain deleted while a map goes there",
      [...MAP, { add: t.chain("a") }, t.elements("add", "m", ["5", "goto a"]), { delete: t.chain("a") }],
      "refused",
    ],
    [
      "a map deleted with the rule that asked it",
      [...jumps(1), ...MAP, t.rule("c1", ASK_MAP), { flush: t.chain("c1") }, { delete: t.map("m") }],
      "done",
    ],
    ["a name of 255 bytes", [TABLE, { add: t.chain("n".repeat(255)) }], "done"],
    ["a name of 256 bytes", [TABLE, { add: t.chain("n".repeat(256)) }], "refused"],
    ["a comment of 128 bytes", [...jumps(1), commented(128)], "done"],
    ["a comment of 129 bytes", [...jumps(1), commented(129)], "refused"],
    ["a full set", [...SMALL, t.elements("add", "s", "1", "2")], "done"],
    ["an element too many", [...SMALL, t.elements("add", "s", "1", "2", "3")], "refused"],
    ["one out, one in", [...SMALL, t.elements("add", "s", "1", "2"), t.elements("delete", "s", "1"), t.elements("add", "s", "3")], "done"],
    [
      "a rule behind one that isn't there",
      [TABLE, { add: t.chain("a") }, { add: { rule: { family: "ip", table: "t", chain: "a", handle: 9, expr: [{ accept: null }] } } }],
      "refused",
    ],
    ["a table deleted and made again", [...jumps(2), { delete: t.table() }, ...jumps(1), ...MAP], "done"],
  ])("at the border: %s", async (_, statements, outcome) => {
    const answer = await twins.give(statements);
    const isDone = outcome === "done";
    expect({ real: answer.real === "done", fake: answer.fake === "done" }).toEqual({ real: isDone, fake: isDone });
    expect(await twins.difference()).toBeUndefined();
  });

  it("with what a foreign hand might think of", async () => {
    const random = createRandom(SEED + 2);
    await twins.start(await showcaseStatements("IPv4"));
    for (let step = 0; step < 500; step++) {
      const statements = Array.from({ length: random() < 0.7 ? 1 : 3 }, () => randomStatement(random));
      const { real, fake } = await twins.give(statements);
      const text = statements.map(nftStatementText);
      expect({ seed: SEED, text, isDone: fake === "done" }).toEqual({ seed: SEED, text, isDone: real === "done" });
      expect(step % 20 === 19 ? await twins.difference() : undefined).toBeUndefined();
    }
  });
});
