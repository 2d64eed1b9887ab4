import { describe, expect, it } from "vitest";
import { withHost } from "../runner/changed-subject.ts";
import { checkHistories } from "./histories.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { FAMILIES } from "@turnout/core";
import { verdictOf } from "../oracle/verdict-of.ts";
import { Runner } from "../runner/runner.ts";
import { createRandom, pickOne } from "@turnout/core/testing";
import { randomEvent, randomPacket, randomSettings } from "./random-objects.ts";
import { STAGE_OBJECTS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";

/** The reference backend on hosts that say what is done to them. */
function subjectWithLog(log: string[]): Subject {
  return withHost((host) => ({
    world: {
      ...host.world,
      exec: {
        ...host.world.exec,
        async run(file, args, options) {
          const result = await host.world.exec.run(file, args, options);
          log.push(result.code === 0 ? (args[0] ?? "") : "failed");
          return result;
        },
      },
    },
    setAddresses(addresses) {
      log.push("addresses");
      host.setAddresses(addresses);
    },
    connect(packet, random) {
      log.push("connect");
      return host.connect(packet, random);
    },
    setFault(fault) {
      if (fault !== undefined) log.push(fault.when);
      host.setFault(fault);
    },
    tamper(random) {
      log.push("tamper");
      return host.tamper(random);
    },
  }))({ module: referenceBackend, createFakeHost: createReferenceHost });
}

/** The reference backend on hosts that, once somebody's hand was at them, show a stain on every thing that was not there before. */
function stained(): Subject {
  return withHost((host) => {
    let isStained = false;
    return {
      tamper(random) {
        isStained = true;
        return host.tamper(random);
      },
      own: () => (isStained ? [...host.own(), "a stain"] : host.own()),
    };
  })({ module: referenceBackend, createFakeHost: createReferenceHost });
}

describe("R-58 random histories on the reference backend", () => {
  it("end where one sync from nothing ends, whatever happens in between", async () => {
    const report = await checkHistories(referenceBackend, createReferenceHost, { seed: 1, steps: 6000 });
    expect(report.findings).toEqual([]);
    expect(report.steps).toBe(6000);
    expect(report.looks).toBeGreaterThan(60);
    expect(report.packets).toBeGreaterThan(500);
  }, 60_000);

  it("let everything happen that they speak of", async () => {
    const log: string[] = [];
    const { module, createFakeHost } = subjectWithLog(log);
    await checkHistories(module, createFakeHost, { seed: 1, steps: 3000 });
    expect(new Set(log)).toEqual(new Set(["write", "list", "failed", "addresses", "before", "during", "after", "tamper", "connect"]));
  }, 60_000);

  it("leave packets alone on a host that can't follow them", async () => {
    const refuse = (): never => {
      throw new Error("packets can't be followed here");
    };
    const { module, createFakeHost } = withHost(() => ({ trace: refuse, connect: refuse }))({
      module: referenceBackend,
      createFakeHost: createReferenceHost,
    });
    const report = await checkHistories(module, createFakeHost, { seed: 1, steps: 2000, looksAtPackets: false });
    expect(report).toMatchObject({ findings: [], packets: 0, steps: 2000 });
    expect(report.looks).toBeGreaterThan(10);
  }, 60_000);

  it("say the same again for the same seed", async () => {
    const execute = async (seed: number): Promise<readonly string[]> => {
      const log: string[] = [];
      const { module, createFakeHost } = subjectWithLog(log);
      await checkHistories(module, createFakeHost, { seed, steps: 200 });
      return log;
    };
    expect(await execute(7)).toEqual(await execute(7));
    expect(await execute(8)).not.toEqual(await execute(7));
  });

  it("name the seed and the step of what they find, from which it is found again", async () => {
    const { module, createFakeHost } = stained();
    const { findings, steps } = await checkHistories(module, createFakeHost, { seed: 3, steps: 5000 });
    expect(steps).toBeLessThan(5000);
    expect(findings).toMatchObject([{ kind: "leftover", got: "1 differences", rules: ["R-58"] }]);
    expect(findings[0]?.details).toContain("too much: a stain");
    const [, seed = ""] = /^history (\d+)$/.exec(findings[0]?.scenario ?? "") ?? [];
    expect((await checkHistories(module, createFakeHost, { seed: Number(seed) })).findings).toEqual(findings);
  });
});

describe("random events", () => {
  it("make worlds in which packets meet every fate, by most of the rules", async () => {
    const fates = new Map<string, number>();
    const because = new Set<string>();
    for (let seed = 1; seed <= 20; seed++) {
      const random = createRandom(seed);
      const runner = await Runner.start(
        { module: referenceBackend, createFakeHost: createReferenceHost },
        { settings: randomSettings(random) },
        STAGE_OBJECTS,
      );
      for (let count = 0; count < 60; count++) {
        const { put = [], remove = [] } = randomEvent(random);
        for (const raw of put) runner.put(raw);
        for (const ref of remove) runner.remove(ref);
      }
      for (let count = 0; count < 100; count++) {
        const verdict = verdictOf(runner.world, randomPacket(random, pickOne(FAMILIES, random), runner.objects));
        fates.set(verdict.is, (fates.get(verdict.is) ?? 0) + 1);
        for (const rule of verdict.because) because.add(rule);
      }
    }
    expect([...fates.keys()].toSorted()).toEqual(["drop", "forward", "pass", "reject"]);
    expect(Math.min(...fates.values())).toBeGreaterThan(100);
    expect(because.size).toBeGreaterThan(20);
  });

  it("make and remove every kind of object, and say so", () => {
    const random = createRandom(1);
    const clusterEvents = Array.from({ length: 3000 }, () => randomEvent(random));
    const put = new Set(clusterEvents.flatMap((clusterEvent) => clusterEvent.put ?? []).map(({ kind }) => kind));
    const removed = new Set(clusterEvents.flatMap((clusterEvent) => clusterEvent.remove ?? []).map(({ kind }) => kind));
    expect([...put].toSorted((a, b) => (String(a) < String(b) ? -1 : 1))).toEqual(["EndpointSlice", "Node", "Service", "ServiceCIDR"]);
    expect([...removed].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(["EndpointSlice", "Node", "Service", "ServiceCIDR"]);
    expect(clusterEvents.some(({ hostAddresses }) => hostAddresses !== undefined)).toBe(true);
  });
});
