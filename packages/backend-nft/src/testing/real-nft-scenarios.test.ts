import type { Exec, ExecResult } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { OwnCommits } from "@turnout/host";
import { nftStatementText } from "@turnout/host/nft-statement";
import type { LinuxWorld, Netlink } from "@turnout/host";
import type { NftStatement } from "@turnout/host/nft-statement";
import { checkBackend, SCENARIOS } from "@turnout/conformance";
import type { FakeHost } from "@turnout/conformance";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NftSession } from "@turnout/host/nft";
import { createFakeLog, createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { nftModule } from "../module.ts";
import { EXTERNAL_RULESET } from "./external-ruleset.ts";
import { createFakeHost } from "./index.ts";
import { contentOf, differenceOf } from "../test-support/listed-content.ts";

const CHOSEN = someOf(SCENARIOS, { oneOf: 6, isKernelKit: true });
const TIMEOUT_MS = 60_000 + CHOSEN.length * 6_000;
const CLEANUP = /^delete table ip6? turnout$/;
/** Elements of this set are packets' doing, which the real nft has not seen. */
const CONTENT = { withoutClients: true };
const { signal } = new AbortController();

/** What a host's nft was given, one transaction after another. */
interface Given {
  readonly statements: readonly NftStatement[];
  /** What the fake held before, where that is compared. */
  readonly before?: readonly string[];
  isDone: boolean;
}

/** All that one host in memory was told in its life. */
interface Recording {
  readonly scenario: string;
  readonly given: Given[];
  /** The kit itself laid hands on the host, had its tools fail, or had packets counted, of which the host in memory knows nothing. */
  isSpoilt: boolean;
  readonly list: () => readonly string[];
}

/** The kit's host with all that its nft is given noted down. */
function recordingHost(scenario: string, recordings: Recording[]): FakeHost {
  const host = createFakeHost();
  const list = (): readonly string[] => contentOf(host.list(), CONTENT);
  const recording: Recording = { scenario, given: [], isSpoilt: false, list };
  recordings.push(recording);
  const note = (statements: readonly NftStatement[]): Given => {
    const text = statements.map(nftStatementText).join("\n");
    recording.isSpoilt ||= text.includes("counted-");
    const isCleanup = CLEANUP.test(text);
    const given = { statements, isDone: true, ...(isCleanup ? { before: list() } : {}) };
    recording.given.push(given);
    return given;
  };
  const world: LinuxWorld = {
    ...host.world,
    exec: recordingExec(host.world.exec, note),
    netlink: recordingNetlink(host.world.netlink, note),
  };
  return new Proxy<FakeHost>(host, {
    get(_, name: keyof FakeHost) {
      if (name === "world") return world;
      const member: unknown = host[name];
      if (typeof member !== "function") return member;
      return (...given: readonly unknown[]): unknown => {
        recording.isSpoilt ||= name === "tamper" || (name === "setFault" && given[0] !== undefined);
        recording.isSpoilt ||= name === "refuse" && (given[0] as readonly string[]).length > 0;
        return Reflect.apply(member, host, given);
      };
    },
  });
}

type Note = (statements: readonly NftStatement[]) => Given;

function recordingNetlink(netlink: Netlink, note: Note): Netlink {
  const noted = async (statements: readonly NftStatement[], write: () => Promise<void>): Promise<void> => {
    const given = note(statements);
    given.isDone = false;
    await write();
    given.isDone = true;
  };
  return {
    ...netlink,
    prepareNftWrite(statements) {
      const write = netlink.prepareNftWrite(statements);
      return () => noted(statements, write);
    },
    deleteNftTable: (family, table) => noted([{ delete: { table: { family, name: table } } }], () => netlink.deleteNftTable(family, table)),
  };
}

function recordingExec(exec: Exec, note: Note): Exec {
  const noted = async (statements: readonly NftStatement[], work: () => Promise<ExecResult>): Promise<ExecResult> => {
    const given = note(statements);
    const result = await work();
    given.isDone = result.code === 0;
    return result;
  };
  return {
    run: (file, args, options) => exec.run(file, args, options),
    open(file, args) {
      const started = exec.open(file, args);
      return {
        ...started,
        finish: (input, options) => noted(options?.data as readonly NftStatement[], () => started.finish(input, options)),
      };
    },
  };
}

/** The real nft in a namespace, given what the fake was given. */
class Replay {
  readonly #exec: Exec;
  readonly #session: NftSession;
  compared = 0;

  constructor({ exec, tables }: TestNamespace) {
    this.#exec = exec;
    this.#session = new NftSession(
      { exec, log: createFakeLog(), own: new OwnCommits(), table: "ip turnout", kernel: { netlink: tables, clock: systemClock() } },
      "nft",
    );
  }

  /** Play a recording on a host that is as the fake was; resolves to what was otherwise. */
  async execute({ given, list }: Recording): Promise<readonly unknown[]> {
    await this.#session.commit([{ flush: { ruleset: null } }], signal);
    await this.#session.commit(EXTERNAL_RULESET, signal);
    const found: unknown[] = [];
    for (const { statements, isDone, before } of given) {
      if (before !== undefined) found.push(await this.#difference("before cleanup", before));
      const isRealDone = await this.#isDone(statements);
      if (isRealDone !== isDone) found.push({ statements, real: isRealDone, fake: isDone });
    }
    found.push(await this.#difference("the end", list()));
    return found.filter((one) => one !== undefined);
  }

  close(): void {
    this.#session.close();
  }

  async #isDone(statements: readonly NftStatement[]): Promise<boolean> {
    try {
      await this.#session.commit(statements, signal);
      return true;
    } catch {
      return false;
    }
  }

  async #difference(at: string, fake: readonly string[]): Promise<unknown> {
    this.compared++;
    const { stdout } = await this.#exec.run("nft", ["-j", "list", "ruleset"]);
    const difference = differenceOf(contentOf(stdout, CONTENT), fake);
    return difference === undefined ? undefined : { at, ...difference };
  }
}

describe("the fake holds what nft holds", needs("root", "netns", "nft>=1.0.6"), () => {
  let namespace: TestNamespace;
  beforeAll(() => {
    namespace = createTestNamespace("tplay");
  });
  afterAll(() => namespace?.remove());

  it(
    `at the end of the kit's scenarios: ${CHOSEN.length} of ${SCENARIOS.length}`,
    async () => {
      const recordings: Recording[] = [];
      let scenario = "the host";
      // What it finds is another test's business (conformance.test.ts).
      await checkBackend(nftModule, () => recordingHost(scenario, recordings), CHOSEN, {
        onCheckpoint: (place) => (scenario = place.scenario),
      });
      const replay = new Replay(namespace);
      for (const recording of recordings.filter(({ isSpoilt }) => !isSpoilt))
        expect({ scenario: recording.scenario, found: await replay.execute(recording) }).toMatchObject({ found: [] });
      replay.close();
      // Each scenario has a host that is cleaned up for one family and then the other, and one that is synced once from nothing.
      expect(replay.compared).toBeGreaterThanOrEqual(CHOSEN.length * 4);
    },
    TIMEOUT_MS,
  );
});
