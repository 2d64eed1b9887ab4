import { spawnSync } from "node:child_process";
import { FAMILIES, ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { createExec } from "@turnout/host";
import { createFakeNetlink } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NftSession } from "../nft-session.ts";
import { SHOWCASE } from "../test-states.ts";
import type { ServiceWish } from "../test-states.ts";
import { FOREIGN_RULESET } from "./foreign-ruleset.ts";
import { createFakeHost } from "./index.ts";
import type { NftFakeHost } from "./index.ts";
import { choose, mutate, randomStatement, seeded } from "./random-transactions.ts";
import { openProxy } from "./test-proxy.ts";

const NAMESPACE = `tfake-${process.pid}`;
/** TURNOUT_SEED=n tries other transactions than CI does. */
const SEED = Number(process.env["TURNOUT_SEED"] ?? 1);
const { signal } = new AbortController();

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

function execInside(): Exec {
  const exec = createExec();
  const inside = (file: string, args: readonly string[]): readonly string[] => ["netns", "exec", NAMESPACE, file, ...args];
  return {
    run: (file, args, options) => exec.run("ip", inside(file, args), options),
    open: (file, args) => exec.open("ip", inside(file, args)),
  };
}

/** What a listing says, whatever the order of elements and the time they have left; handles differ once a transaction was refused. */
function contentOf(text: string, withHandles: boolean): readonly string[] {
  const entries = (JSON.parse(text) as { readonly nftables: readonly unknown[] }).nftables.slice(1);
  // Handles of tables are counted over the namespace's life.
  return entries.map((entry) => JSON.stringify(normal(entry, withHandles && !Object.hasOwn(entry as object, "table"))));
}

function normal(value: unknown, withHandles: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => normal(item, withHandles));
  if (typeof value !== "object" || value === null) return value;
  const left = Object.entries(value).filter(([key]) => key !== "expires" && (withHandles || key !== "handle"));
  return Object.fromEntries(
    left.map(([key, inner]): [string, unknown] => {
      const made = normal(inner, withHandles);
      return [key, Array.isArray(made) && (key === "elem" || key === "set") ? made.map((item) => JSON.stringify(item)).sort() : made];
    }),
  );
}

/** The real nft in its namespace and the fake, which are given the same and must do the same. */
class Twins {
  readonly #exec = execInside();
  readonly #real = new NftSession({ exec: this.#exec, netlink: createFakeNetlink() }, "nft");
  host: NftFakeHost = createFakeHost();
  #fake = new NftSession(this.host.world, "nft");
  #sinceEqual: string[] = [];

  /** Begin anew, both with the same statements and nothing else. */
  async start(statements: readonly string[] = []): Promise<void> {
    this.host = createFakeHost();
    this.host.nft("flush ruleset\n");
    this.#fake = new NftSession(this.host.world, "nft");
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
    const [real, fake] = [contentOf(stdout, withHandles), contentOf(this.host.list(), withHandles)];
    const given = this.#sinceEqual;
    this.#sinceEqual = [];
    if (JSON.stringify(real) === JSON.stringify(fake)) return undefined;
    const without = (lines: readonly string[], others: readonly string[]): readonly string[] =>
      lines.filter((line) => !others.includes(line)).slice(0, 5);
    return { seed: SEED, given, real: without(real, fake), fake: without(fake, real) };
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

function randomWishes(random: () => number): readonly ServiceWish[] {
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

/** All statements that lead to the showcase, as one list. */
async function showcaseStatements(family: IPFamily): Promise<readonly string[]> {
  return (await (await openProxy(createFakeHost().world, family)).sync(SHOWCASE)).flat();
}

describe("the fake does what nft does", needs("root", "netns", "nft>=1.0.6"), () => {
  let twins: Twins;
  beforeAll(() => {
    ip("netns", "add", NAMESPACE);
    twins = new Twins();
  });
  afterAll(() => {
    twins?.close();
    ip("netns", "del", NAMESPACE);
  });
  beforeEach(() => twins.start());

  it.each(FAMILIES)("with all that a backend's history of changes and a foreign hand give it, %s", async (family) => {
    const random = seeded(SEED);
    const proxy = await openProxy(twins.host.world, family);
    for (let step = 0; step < 25; step++) {
      const transactions = [...(await proxy.sync(step === 0 ? SHOWCASE : randomWishes(random)))];
      await twins.host.advance(700);
      const deed = step % 3 === 2 ? twins.host.tamper(random) : undefined;
      if (deed !== undefined) transactions.push([deed]);
      for (const statements of transactions)
        expect({ statements, real: await twins.giveReal(statements) }).toEqual({ statements, real: "done" });
      if (deed !== undefined) await proxy.adopt();
      expect(await twins.difference(true)).toBeUndefined();
    }
  });

  it("with other people's tables", async () => {
    await twins.start(FOREIGN_RULESET.split("\n"));
    expect(JSON.parse(twins.host.list())).toHaveProperty("nftables.length", 23);
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
