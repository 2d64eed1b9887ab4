import { shapesOr } from "../case.ts";
import type { BenchCase, CaseResult } from "../case.ts";
import { runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { AdoptParameters, Adoption } from "../roles/adopt.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
const RUNS = 3;

/** A new process finds the rules of the one before. */
export const restart: BenchCase = {
  name: "restart",
  about: "a new process adopts what the one before left: reading it and finding nothing to do",
  needs: ["root", "nft"],
  async run(context): Promise<CaseResult> {
    const data: { shape: Shape; adoptions: Adoption[] }[] = [];
    for (const shape of shapesOr(SHAPES, context)) {
      const adoptions: Adoption[] = [];
      for (let run = 1; run <= (context.runs ?? RUNS); run++) {
        context.progress(`${shapeText(shape)}: run ${run}`);
        const parameters: AdoptParameters = { shape };
        adoptions.push(await runRole<Adoption>("adopt", parameters));
      }
      data.push({ shape, adoptions });
    }
    return {
      title: "Restart: adoption",
      about:
        "A second process starts on the same host, and nothing has changed (that is checked). *Total* is from objects in the store until the process knows that every rule is as it should be; " +
        "the old rules forward packets meanwhile. *Reading* is the part in which the table is read from the kernel; in a run before 2026-11-24 nft listed it, and its output was parsed.",
      columns: ["services x endpoints", "kernel objects", "total", "of it reading"],
      rows: data.map(({ shape, adoptions }) => [
        shapeText(shape),
        String(adoptions[0]?.objects ?? 0),
        runsText(
          adoptions.map(({ totalMs }) => totalMs),
          timeText,
        ),
        runsText(
          adoptions.map(({ observeMs }) => observeMs),
          timeText,
        ),
      ]),
      targets: [],
      data,
    };
  },
};
