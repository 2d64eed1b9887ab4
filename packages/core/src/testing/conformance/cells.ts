import type { IPFamily, Protocol } from "../../objects.ts";
import { FAMILIES } from "../../objects.ts";
import type { BackendModule } from "../../backend.ts";
import type { Cell, Finding } from "./finding.ts";
import type { Scenario } from "./scenario.ts";

/** Every protocol, in the order they are reported. */
export const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** Where a scenario is played. */
export interface Part {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Why it can't be; undefined: it can. */
  readonly skipped: string | undefined;
}

/** List the families and protocols of a scenario, each with the reason why this backend isn't asked. */
export function partsOf(
  { families = FAMILIES, protocols = PROTOCOLS, needs = [] }: Scenario,
  { capabilities }: BackendModule,
): readonly Part[] {
  return families.flatMap((family) =>
    protocols.map((protocol): Part => {
      const missing = [family, protocol, ...needs].find((one) => capabilities[one] !== true);
      return { family, protocol, skipped: missing === undefined ? undefined : `no ${missing}: ${capabilities[missing]}` };
    }),
  );
}

/** Counts probes and findings by rule, family and protocol. */
export class Cells {
  readonly #cells = new Map<
    string,
    { rule: string; family: IPFamily; protocol: Protocol; probes: number; findings: number; skipped?: string }
  >();

  /** Note that a rule should be looked at here. */
  open(rule: string, { family, protocol, skipped }: Part): void {
    const cell = this.#cell(rule, family, protocol);
    if (skipped !== undefined && cell.probes === 0) cell.skipped = skipped;
    else if (skipped === undefined) delete cell.skipped;
  }

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

function cellKey(rule: string, family: IPFamily, protocol: Protocol): string {
  return `${rule} ${family} ${protocol}`;
}
