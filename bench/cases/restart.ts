import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { AdoptedRules, Adoption, AdoptParameters } from "../roles/adopt.ts";
import { median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 1_000, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
];
const RUNS = 3;
const NFT_MAX_MS = 1_000;
const LEGACY_MAX_MS = 3_000;
/** Beside one listing by the tool. */
const LISTING_MAX = 1.5;

/** Samples of one size and one backend. */
interface RestartData {
  readonly shape: Shape;
  readonly rules: AdoptedRules;
  readonly adoptions: readonly Adoption[];
}

/** A new process finds the rules of the one before. */
export const restart: BenchCase = {
  name: "restart",
  about: "a new process adopts what the one before left: reading it and finding nothing to do; nft, and both variants of iptables",
  needs: ["root", "nft", "iptables"],
  async run(context): Promise<CaseResult> {
    const data: RestartData[] = [];
    for (const shape of shapesOr(SHAPES, context)) {
      for (const rules of rulesFor(shape, context)) data.push({ shape, rules, adoptions: await measure(shape, rules, context) });
    }
    return {
      title: "Restarts",
      about:
        "A second process starts on the same host, and nothing has changed (that is checked). *Total* is from objects in the store until the process knows that every rule is as it should be; " +
        "the old rules forward packets meanwhile. *CPU* is that of Node and of the tools that it ran. *Reading* is the part in which the rules are read and told apart. *One listing* is `iptables-save` alone, run before.",
      columns: ["services x endpoints", "backend", "total", "CPU", "of it reading", "one listing"],
      rows: data.map(rowOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

/** With iptables on nf_tables the first process alone needs half a minute at 10,000 Services. */
function rulesFor({ services }: Shape, { isQuick }: CaseContext): readonly AdoptedRules[] {
  return isQuick && services > 1_000 ? ["nft"] : ["nft", { iptables: "nft" }, { iptables: "legacy" }];
}

async function measure(shape: Shape, rules: AdoptedRules, { runs = RUNS, progress }: CaseContext): Promise<readonly Adoption[]> {
  const adoptions: Adoption[] = [];
  for (let run = 1; run <= runs; run++) {
    progress(`${shapeText(shape)}, ${nameOf(rules)}: run ${run}`);
    const parameters: AdoptParameters = { shape, rules };
    adoptions.push(await runRole<Adoption>("adopt", parameters));
  }
  return adoptions;
}

function nameOf(rules: AdoptedRules): string {
  return rules === "nft" ? "nft" : `iptables (${rules.iptables})`;
}

function rowOf({ shape, rules, adoptions }: RestartData): readonly string[] {
  const text = (of: (adoption: Adoption) => number | undefined): string => {
    const samples = adoptions.flatMap((adoption) => of(adoption) ?? []);
    return samples.length === 0 ? "" : runsText(samples, timeText);
  };
  return [
    shapeText(shape),
    nameOf(rules),
    text(({ totalMs }) => totalMs),
    text(({ cpuMs }) => cpuMs),
    text(({ observeMs }) => observeMs),
    text(({ listingMs }) => listingMs),
  ];
}

function targetsOf({ shape, rules, adoptions }: RestartData): readonly Goal[] {
  if (!isShape(shape, 10_000, 10)) return [];
  const totalMs = median(adoptions.map((adoption) => adoption.totalMs));
  const what = `restart with ${nameOf(rules)} at ${shapeText(shape)}`;
  if (rules !== "nft" && rules.iptables === "nft") {
    const ratio = totalMs / median(adoptions.map(({ listingMs }) => listingMs ?? 0));
    const wanted = `the time of one listing: ${ratioText(LISTING_MAX)} at most`;
    return [{ what, wanted, measured: ratioText(ratio), isMet: ratio <= LISTING_MAX }];
  }
  const maxMs = rules === "nft" ? NFT_MAX_MS : LEGACY_MAX_MS;
  return [{ what, wanted: `under ${timeText(maxMs)}`, measured: timeText(totalMs), isMet: totalMs < maxMs }];
}
