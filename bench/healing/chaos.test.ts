import { createRandom } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { isFullRun } from "@turnout/house/some-of";
import { describe, expect, it } from "vitest";
import { runChaos } from "./chaos.ts";
import { VICTIMS } from "./hands.ts";

const ROUNDS = isFullRun() ? 20 : 4;
/** Any will do; the whole is `npm run e2e:chaos`. */
const SEED = 7;
const SHARE = Object.entries(VICTIMS).filter(([name, { isInVm }]) => isInVm !== true && (isFullRun() || name === "nft"));

describe(
  "a foreign hand that changes rules at random",
  { ...needs("root", "netns", "ip", "nft>=1.0.1", "iptables-nft>=1.8.0", "iptables-legacy", "conntrack"), timeout: 600_000 },
  () => {
    it.each(SHARE)("%s: packets flow again each time, and nothing of others is touched", async (_name, victim) => {
      expect(await runChaos({ victim, rounds: ROUNDS, random: createRandom(SEED) })).toEqual([]);
    });
  },
);
