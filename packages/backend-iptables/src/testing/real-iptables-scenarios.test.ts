import type { Exec, ExecOptions, ExecResult } from "@turnout/core";
import { checkBackend, SCENARIOS } from "@turnout/conformance";
import type { FakeHost } from "@turnout/conformance";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LinuxWorld } from "@turnout/host";
import type { IptablesVariant } from "@turnout/host/iptables";
import { iptablesModule } from "../module.ts";
import { hash16 } from "../names.ts";
import { createFakeHost } from "./index.ts";
import type { IptablesFakeHost } from "./index.ts";
import { RealTools, savedDifference } from "../test-support/real-tools.ts";

const CHOSEN = someOf(SCENARIOS, { oneOf: 16, isKernelKit: true });
const TIMEOUT_MS = 60_000 + CHOSEN.length * 4_000;
/** Every so many changes both are compared. */
const LOOK_EVERY = 6;

/** A change that a host's tools were given, and what came of it. */
interface Given {
  readonly command: string;
  readonly input: string;
  readonly code: number;
  /** What the fake held then, by tool, where both are compared. */
  readonly saved?: ReadonlyMap<string, string>;
}

/** All that one host in memory was told in its life. */
interface Recording {
  readonly scenario: string;
  readonly tools: readonly string[];
  /** What the fake held before the first change; undefined: there was none. */
  start: ReadonlyMap<string, string> | undefined;
  readonly given: Given[];
  /** The kit itself laid hands on the host, or had its tools fail. */
  isSpoilt: boolean;
}

async function save(host: IptablesFakeHost, tools: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Map(await Promise.all(tools.map(async (tool) => [tool, (await host.run(`${tool}-save`)).stdout] as const)));
}

/** The kit's host with all that its tools are given noted down. */
function recordingHost(scenario: string, recordings: Recording[]): FakeHost {
  const variant: IptablesVariant = hash16(scenario).charCodeAt(1) % 2 === 0 ? "nft" : "legacy";
  const host = createFakeHost({ variant });
  const tools = [`iptables-${variant}`, `ip6tables-${variant}`];
  const recording: Recording = { scenario, tools, start: undefined, given: [], isSpoilt: false };
  recordings.push(recording);
  const change = async (file: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> => {
    recording.start ??= await save(host, tools);
    const result = await host.world.exec.run(file, args, options);
    const isLook = recording.given.length % LOOK_EVERY === LOOK_EVERY - 1;
    const saved = isLook ? { saved: await save(host, tools) } : {};
    recording.given.push({ command: [file, ...args].join(" "), input: options.input ?? "", code: result.code, ...saved });
    return result;
  };
  // One after another: what is noted down is what the host held at that moment.
  let last: Promise<unknown> = Promise.resolve();
  const exec: Exec = {
    run(file, args, options = {}) {
      if (!file.endsWith("-restore")) return host.world.exec.run(file, args, options);
      const result = last.then(() => change(file, args, options));
      last = Promise.allSettled([result]);
      return result;
    },
    open: (file, args) => host.world.exec.open(file, args),
  };
  const world: LinuxWorld = { ...host.world, exec };
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

/** Play a recording on the real tools; resolves to what was otherwise. */
async function execute(real: RealTools, { start, tools, given }: Recording): Promise<readonly unknown[]> {
  for (const tool of tools) await real.load(tool, start?.get(tool) ?? "");
  const found: unknown[] = [];
  for (const { command, input, code, saved } of given) {
    const answer = await real.run(command, input);
    if (answer.code !== code) found.push({ command, input, fake: code, real: answer.code, stderr: answer.stderr });
    for (const [tool, text] of saved ?? []) {
      const difference = savedDifference((await real.run(`${tool}-save`)).stdout, text);
      if (difference !== undefined) found.push({ input, tool, difference });
    }
  }
  return found;
}

describe("the fake holds what iptables holds", needs("root", "netns", "iptables>=1.8.9"), () => {
  let real: RealTools;
  beforeAll(() => {
    real = new RealTools(`tplayipt-${process.pid}`);
  });
  afterAll(() => real?.close());

  it(
    `while the kit's scenarios are played: ${CHOSEN.length} of ${SCENARIOS.length}`,
    async () => {
      const recordings: Recording[] = [];
      let scenario = "the host";
      // What it finds is another test's business (conformance.test.ts).
      await checkBackend(iptablesModule, () => recordingHost(scenario, recordings), CHOSEN, {
        onCheckpoint: (place) => (scenario = place.scenario),
      });
      const ran = recordings.filter(({ isSpoilt, start }) => !isSpoilt && start !== undefined);
      for (const recording of ran)
        expect({ scenario: recording.scenario, found: await execute(real, recording) }).toMatchObject({ found: [] });
      expect(ran.length).toBeGreaterThanOrEqual(CHOSEN.length);
    },
    TIMEOUT_MS,
  );
});
