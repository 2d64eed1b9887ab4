import type { Context, Destination, Rule, ServicePort } from "@turnout/core";
import type { FindingKind } from "../checks/finding.ts";
import { withBackend } from "../runner/changed-subject.ts";
import type { OptionalMember } from "../runner/fake-host.ts";
import type { Subject } from "../runner/subject.ts";

/**
 * Defect of a backend or its host: what it offends against (rules, or a duty of the contract), how it comes about, as what it is found (default
 * `verdict`), and the optional member of the host without which it can't be.
 */
export type Defect = readonly [of: string, apply: (subject: Subject) => Subject, kinds?: readonly FindingKind[], needs?: OptionalMember];

/** Make a subject whose backends see other rows than they are given. */
export function withRows(change: (row: ServicePort) => ServicePort): (subject: Subject) => Subject {
  return withBackend((inner) => ({ render: (row, context) => inner.render(change(row), context) }));
}

/** Make a subject whose backends see other rules than those of their rows. */
export function withRules(
  change: (rules: readonly Rule[], destination: Destination, row: ServicePort) => readonly Rule[],
): (subject: Subject) => Subject {
  return withRows((row) => ({
    ...row,
    destinations: row.destinations.map((destination) =>
      withSources({ ...destination, rules: change(destination.rules, destination, row) }),
    ),
  }));
}

/** Make a subject whose backends see another node than theirs. */
export function withNode(change: (context: Context<unknown>) => Context<unknown>): (subject: Subject) => Subject {
  return withBackend((inner) => ({
    skeleton: (context) => inner.skeleton(change(context)),
    render: (row, context) => inner.render(row, change(context)),
  }));
}

/** Indexes of a row's endpoints that fit. */
export function indexesOf({ endpoints }: ServicePort, fits: (endpoint: ServicePort["endpoints"][number]) => boolean): readonly number[] {
  return endpoints.flatMap((endpoint, index) => (fits(endpoint) ? [index] : []));
}

/** A row whose rules lead nowhere that is empty: an empty pool is refused instead. */
export function withoutEmptyPools(row: ServicePort): ServicePort {
  const isEmpty = ({ to }: Rule): boolean => (to === "cluster" || to === "local") && row[to].length === 0;
  const fix = (rule: Rule): Rule => (isEmpty(rule) ? { ...rule, to: "reject", masquerade: false } : rule);
  return { ...row, destinations: row.destinations.map((destination) => ({ ...destination, rules: destination.rules.map(fix) })) };
}

function withSources({ sourceRanges, ...destination }: Destination): Destination {
  const isUsed = destination.rules.some(({ from }) => from === "outsideSourceRanges");
  return sourceRanges === undefined || !isUsed ? destination : { ...destination, sourceRanges };
}
