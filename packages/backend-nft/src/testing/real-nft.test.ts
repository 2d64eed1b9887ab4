import { FAMILIES, ProxyError } from "@turnout/core";
import { OwnCommits } from "@turnout/host";
import type { Exec, IPFamily } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NftSession } from "@turnout/host/nft";
import { createFakeLog } from "@turnout/host/testing";
import { createTestNamespace } from "../test-support/namespace.ts";
import type { TestNamespace } from "../test-support/namespace.ts";
import { EXTERNAL_RULESET } from "./external-ruleset.ts";
import { createFakeHost } from "./index.ts";
import type { NftFakeHost } from "./index.ts";
import { contentOf, differenceOf } from "../test-support/listed-content.ts";
import { choose, mutate, randomStatement, seeded } from "../test-support/random-transactions.ts";
import { openProxy } from "../test-support/test-proxy.ts";

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
  async start(statements: readonly string[] = []): Promise<void> {
    this.host = createFakeHost();
    this.host.nft("flush ruleset\n");
    this.#fake = new NftSession({ ...this.host.world, own: new OwnCommits(), table: "ip t" }, "nft");
    await this.#exec.run("nft", ["flush", "ruleset"]);
    this.#sinceEqual = [];
    if (statements.length > 0) await this.give(statements);
  }

  /** Give both one transaction: `done`, or the kind of error, for each. */
  async give(statements: readonly string[]): Promise<{ readonly real: string; readonly fake: string }> {
    const real = await this.giveReal(statements);
    return { real, fake: await outcomeOf(this.#fake, statements) };
  }

  /** Give the real one what the fake has been given already. */
  async giveReal(statements: readonly string[]): Promise<string> {
    const outcome = await outcomeOf(this.#real, statements);
    this.#sinceEqual.push(`${outcome}: ${statements.join("; ").slice(0, 1_000)}`);
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

async function outcomeOf(session: NftSession, statements: readonly string[]): Promise<string> {
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
    const protocol = choose(["TCP", "UDP", "SCTP"], random);
    return [{ name: `svc-${number}`, number, protocol, local: upTo(4), remote: upTo(4), loadBalancerIPs, spec }];
  });
}

const MAP = ["add table ip t", "add map ip t m { type inet_service : verdict; }"];

/** A base chain, and chains `c1` to `cN` that jump to each other in a row. */
function jumps(count: number): readonly string[] {
  const names = ["base", ...Array.from({ length: count }, (_, index) => `c${index + 1}`)];
  return [
    "add table ip t",
    "add chain ip t base { type filter hook input priority 0; }",
    ...names.slice(1).map((name) => `add chain ip t ${name}`),
    ...names.slice(1).map((name, index) => `add rule ip t ${names[index]} jump ${name}`),
  ];
}

/** All statements that lead to the showcase, as one list. */
async function showcaseStatements(family: IPFamily): Promise<readonly string[]> {
  return (await (await openProxy(createFakeHost().world, family)).sync(SHOWCASE)).flat();
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
    const random = seeded(SEED);
    const proxy = await openProxy(twins.host.world, family);
    for (let step = 0; step < 25; step++) {
      const transactions = [...(await proxy.sync(step === 0 ? SHOWCASE : randomFixtures(random)))];
      await twins.host.advance(700);
      const tampering = step % 3 === 2 ? twins.host.tamper(random) : undefined;
      if (tampering !== undefined) transactions.push([tampering]);
      for (const statements of transactions)
        expect({ statements, real: await twins.giveReal(statements) }).toEqual({ statements, real: "done" });
      if (tampering !== undefined) await proxy.adopt();
      expect(await twins.difference(true)).toBeUndefined();
    }
  });

  it("with other people's tables", async () => {
    await twins.start(EXTERNAL_RULESET.split("\n"));
    expect(JSON.parse(twins.host.list())).toHaveProperty("nftables.length", 33);
    expect(await twins.difference(true)).toBeUndefined();
  });

  // Both take it, or both refuse it. Why may differ: nft names all it has against a transaction, the fake one thing.
  it.each(FAMILIES)("with transactions that are broken somewhere, %s", async (family) => {
    const random = seeded(SEED + 1);
    const corpus = await showcaseStatements(family);
    await twins.start(corpus);
    for (let step = 0; step < 300; step++) {
      const at = Math.floor(random() * corpus.length);
      const statements = mutate(corpus.slice(at, at + 1 + Math.floor(random() * 3)), corpus, random);
      if (statements.length === 0) continue;
      const { real, fake } = await twins.give(statements);
      expect({ seed: SEED, statements, isDone: fake === "done" }).toEqual({ seed: SEED, statements, isDone: real === "done" });
      expect(step % 20 === 19 ? await twins.difference() : undefined).toBeUndefined();
    }
  });

  it.each<[string, readonly string[], "done" | "refused"]>([
    ["fifteen jumps deep", jumps(15), "done"],
    ["sixteen jumps deep", jumps(16), "refused"],
    ["a loop", [...jumps(3), "add rule ip t c3 goto c1"], "refused"],
    ["a loop that no packet gets into", ["add table ip t", "add chain ip t a", "add rule ip t a goto a"], "done"],
    [
      "a loop by way of a map",
      [...jumps(2), ...MAP, "add rule ip t c2 tcp dport vmap @m", "add element ip t m { 5 : jump c1 }"],
      "refused",
    ],
    [
      "a statement out of place by way of a map",
      [
        ...jumps(2),
        ...MAP,
        "add rule ip t c2 tcp dport vmap @m",
        "add chain ip t n",
        "add rule ip t n masquerade",
        "add element ip t m { 5 : jump n }",
      ],
      "refused",
    ],
    ["a chain deleted with the last rule that goes there", [...jumps(2), "flush chain ip t c1", "delete chain ip t c2"], "done"],
    [
      "a chain deleted while a map goes there",
      [...MAP, "add chain ip t a", "add element ip t m { 5 : goto a }", "delete chain ip t a"],
      "refused",
    ],
    [
      "a map deleted with the rule that asked it",
      [...jumps(1), ...MAP, "add rule ip t c1 tcp dport vmap @m", "flush chain ip t c1", "delete map ip t m"],
      "done",
    ],
    ["a name of 255 bytes", ["add table ip t", `add chain ip t ${"n".repeat(255)}`], "done"],
    ["a name of 256 bytes", ["add table ip t", `add chain ip t ${"n".repeat(256)}`], "refused"],
    ["a comment of 128 bytes", [...jumps(1), `add rule ip t c1 drop comment "${"x".repeat(128)}"`], "done"],
    ["a comment of 129 bytes", [...jumps(1), `add rule ip t c1 drop comment "${"x".repeat(129)}"`], "refused"],
    ["a full set", ["add table ip t", "add set ip t s { type mark; size 2; }", "add element ip t s { 1, 2 }"], "done"],
    ["an element too many", ["add table ip t", "add set ip t s { type mark; size 2; }", "add element ip t s { 1, 2, 3 }"], "refused"],
    [
      "one out, one in",
      [
        "add table ip t",
        "add set ip t s { type mark; size 2; }",
        "add element ip t s { 1, 2 }",
        "delete element ip t s { 1 }",
        "add element ip t s { 3 }",
      ],
      "done",
    ],
    ["a rule behind one that isn't there", ["add table ip t", "add chain ip t a", "add rule ip t a handle 9 accept"], "refused"],
    ["a table deleted and made again", [...jumps(2), "delete table ip t", ...jumps(1), ...MAP], "done"],
  ])("at the border: %s", async (_, statements, outcome) => {
    const answer = await twins.give(statements);
    const isDone = outcome === "done";
    expect({ real: answer.real === "done", fake: answer.fake === "done" }).toEqual({ real: isDone, fake: isDone });
    expect(await twins.difference()).toBeUndefined();
  });

  it("with what a foreign hand might think of", async () => {
    const random = seeded(SEED + 2);
    await twins.start(await showcaseStatements("IPv4"));
    for (let step = 0; step < 500; step++) {
      const statements = Array.from({ length: random() < 0.7 ? 1 : 3 }, () => randomStatement(random));
      const { real, fake } = await twins.give(statements);
      expect({ seed: SEED, statements, isDone: fake === "done" }).toEqual({ seed: SEED, statements, isDone: real === "done" });
      expect(step % 20 === 19 ? await twins.difference() : undefined).toBeUndefined();
    }
  });
});
