import type { Abilities, Capability, IPFamily, Protocol } from "@turnout/core";
import { FAMILIES } from "@turnout/core";
import type { Cell, Finding } from "./finding.ts";
import type { Scenario } from "../runner/scenario.ts";

/** Every protocol, in the order they are reported. */
export const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** What happens where a capability is missing: it fails closed, and is reported. */
const FAILS_CLOSED = "R-56";

/** Rules that can't hold as they are written without a capability; R-56 says what holds instead. */
const RULE_NEEDS: Readonly<Record<string, readonly Capability[]>> = {
  "R-07": ["sourceRanges"],
  "R-08": ["sessionAffinity"],
  "R-12": ["endpointPorts"],
  "R-23": ["refuse"],
  "R-24": ["clientAddress", "origins"],
  "R-26": ["clientAddress"],
  "R-27": ["drop"],
  "R-29": ["refuse"],
  "R-30": ["clientAddress"],
  "R-31": ["clientAddress", "origins"],
  "R-32": ["hostOrigin", "origins"],
  "R-33": ["drop"],
  "R-35": ["origins"],
  "R-36": ["hairpin"],
  "R-39": ["sourceRanges", "drop"],
  "R-40": ["sourceRanges", "hostOrigin"],
  "R-41": ["forgetsFlows"],
  "R-43": ["forgetsFlows"],
  "R-44": ["forgetsFlows"],
  "R-45": ["forgetsFlows"],
  "R-46": ["sessionAffinity"],
  "R-48": ["drop"],
};

/** Where a scenario is played. */
export interface Part {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Why it can't be; undefined: it can. */
  readonly skipped: string | undefined;
  /** Rules of the scenario that the backend can't keep anywhere, each with the reason. */
  readonly leftOut: ReadonlyMap<string, string>;
}

/** List the families and protocols of a scenario, each with the reason why this backend isn't asked. */
export function partsOf(
  { families = FAMILIES, protocols = PROTOCOLS, needs = [], rules }: Scenario,
  { capabilities }: Pick<Abilities, "capabilities">,
): readonly Part[] {
  const leftOut = new Map(
    rules.flatMap((rule): [string, string][] => {
      const why = whyNot(RULE_NEEDS[rule] ?? [], capabilities);
      return why === undefined ? [] : [[rule, why]];
    }),
  );
  return families.flatMap((family) =>
    protocols.map((protocol): Part => ({ family, protocol, skipped: whyNot([family, protocol, ...needs], capabilities), leftOut })),
  );
}

/**
 * Tell which rules a backend is asked about where a scenario shows some: of what it can't do it is only asked that it fails closed. Pure.
 * @returns each rule once, R-56 in the place of those that are left out
 */
export function rulesAsked(rules: readonly string[], { capabilities }: Pick<Abilities, "capabilities">): readonly string[] {
  return [...new Set(rules.map((rule) => (whyNot(RULE_NEEDS[rule] ?? [], capabilities) === undefined ? rule : FAILS_CLOSED)))];
}

function whyNot(needs: readonly Capability[], capabilities: Abilities["capabilities"]): string | undefined {
  const missing = needs.find((one) => capabilities[one] !== true);
  return missing === undefined ? undefined : `no ${missing}: ${capabilities[missing]}`;
}

/** Counts probes and findings by rule, family and protocol. */
export class Cells {
  readonly #cells = new Map<
    string,
    { rule: string; family: IPFamily; protocol: Protocol; probes: number; findings: number; skipped?: string }
  >();

  /** Note that a rule should be looked at here; for one that is left out, what holds instead. */
  open(rule: string, part: Part): void {
    const { family, protocol, skipped, leftOut } = part;
    const cell = this.#cell(rule, family, protocol);
    const why = leftOut.get(rule);
    if (why !== undefined) {
      cell.skipped = why;
      this.open(FAILS_CLOSED, part);
    } else if (skipped !== undefined && cell.probes === 0) cell.skipped = skipped;
    else if (skipped === undefined) delete cell.skipped;
  }

  /** Count a packet for all of {@link rulesAsked}. */
  probe(rules: readonly string[], family: IPFamily, protocol: Protocol): void {
    for (const rule of rules) this.#cell(rule, family, protocol).probes++;
  }

  /** Count a finding; one that says no protocol counts for all that were played. */
  finding({ rules, family, protocol }: Finding): void {
    for (const rule of rules)
      for (const one of protocol === undefined ? PROTOCOLS : [protocol]) {
        const cell = this.#cells.get(cellKey(rule, family, one));
        if (cell !== undefined && cell.skipped === undefined) cell.findings++;
      }
  }

  /** Count what other scenarios asked. */
  add({ rule, family, protocol, probes, skipped }: Cell): void {
    const isNew = !this.#cells.has(cellKey(rule, family, protocol));
    const cell = this.#cell(rule, family, protocol);
    cell.probes += probes;
    if (skipped === undefined) delete cell.skipped;
    else if (isNew) cell.skipped = skipped;
  }

  /** All cells, by rule. */
  list(): readonly Cell[] {
    return [...this.#cells.values()].toSorted((a, b) => (a.rule < b.rule ? -1 : a.rule > b.rule ? 1 : 0));
  }

  #cell(rule: string, family: IPFamily, protocol: Protocol): { probes: number; findings: number; skipped?: string } {
    const key = cellKey(rule, family, protocol);
    const known = this.#cells.get(key) ?? { rule, family, protocol, probes: 0, findings: 0 };
    this.#cells.set(key, known);
    return known;
  }
}

/** Cells of scenarios that were played apart, as if they had been played together; `findings` are all there are. Pure. */
export function mergeCells(all: readonly Cell[], findings: readonly Finding[]): readonly Cell[] {
  const cells = new Cells();
  for (const cell of all) cells.add(cell);
  for (const finding of findings) cells.finding(finding);
  return cells.list();
}

function cellKey(rule: string, family: IPFamily, protocol: Protocol): string {
  return `${rule} ${family} ${protocol}`;
}
