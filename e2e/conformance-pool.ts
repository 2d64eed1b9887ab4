import { STAGE_SETTINGS } from "@turnout/conformance";
import type { Scenario } from "@turnout/conformance";
import { createRealStage } from "./conformance-stage.ts";
import type { Dataplane, RealStage } from "./conformance-stage.ts";

/** A few stages that scenarios take turns on. */
export interface StagePool {
  /** Wait for a stage, use it alone, give it back. A stage that already has the scenario's settings is preferred. */
  use<T>(scenario: Pick<Scenario, "settings">, act: (stage: RealStage) => Promise<T>): Promise<T>;
  destroy(): Promise<void>;
}

interface Waiting {
  readonly settings: string;
  readonly take: (slot: Slot) => void;
}

interface Slot {
  readonly stage: RealStage;
  settings: string;
}

/** Build `count` stages. */
export async function createStagePool(count: number, dataplane: Dataplane): Promise<StagePool> {
  const stages = await Promise.all(Array.from({ length: count }, () => createRealStage(dataplane)));
  const free: Slot[] = stages.map((stage) => ({ stage, settings: settingsKey({}) }));
  const waiting: Waiting[] = [];
  const take = (settings: string): Promise<Slot> => {
    const slot = takeFirst(free, (candidate) => candidate.settings === settings);
    if (slot !== undefined) return Promise.resolve(slot);
    return new Promise((resolve) => waiting.push({ settings, take: resolve }));
  };
  const giveBack = (slot: Slot): void => {
    const next = takeFirst(waiting, ({ settings }) => settings === slot.settings);
    if (next === undefined) free.push(slot);
    else next.take(slot);
  };
  return {
    use: async (scenario, act) => {
      const settings = settingsKey(scenario);
      const slot = await take(settings);
      slot.settings = settings;
      try {
        return await act(slot.stage);
      } finally {
        giveBack(slot);
      }
    },
    destroy: async () => {
      await Promise.all(stages.map((stage) => stage.site.destroy()));
    },
  };
}

/** Scenarios with the same key can follow each other without a new proxy. */
export function settingsKey({ settings }: Pick<Scenario, "settings">): string {
  return JSON.stringify({ ...STAGE_SETTINGS, ...settings });
}

/** Take out the first that suits, or else simply the first. */
function takeFirst<T>(list: T[], suits: (one: T) => boolean): T | undefined {
  const index = Math.max(0, list.findIndex(suits));
  return list.splice(index, 1)[0];
}
