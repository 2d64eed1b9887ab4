import type { IPFamily } from "@turnout/core";
import type { Attempt, Tally, Transport } from "@turnout/lab";
import type { TestService, Way } from "./services.ts";
import type { Site } from "./site.ts";
import { attemptWithWitness, PATIENCE_MS } from "./witness.ts";

/** Long enough for a rejected SYN to be sent again (1 s) and refused then; see the laboratory's README. */
const SILENCE_MS = 1_500;

/** Who tries to reach what. */
export interface Try {
  /** Name of the place that asks. */
  readonly from: string;
  readonly way: Way;
  /** Default TCP. */
  readonly transport?: Transport;
  /** Another port than the way's own. */
  readonly port?: number;
}

/**
 * Say in words what becomes of reaching a service: who answered and whom they saw.
 *
 * Shape: `pod-1-1 pod-2-1 saw node1`, in the order of names; or the outcome alone (`refused`, `timeout`); the same words in both families.
 * Edges: one attempt decides whether it works at all, silence only when it is silent a second time, beside a witness that answers; then so many more that a server which should answer is never missed by chance
 * (for four servers less than 1 in 10^9).
 */
export async function reach(site: Site, service: TestService, family: IPFamily, wanted: Try): Promise<string> {
  const { from, way, transport = "TCP", port } = wanted;
  const request = { ...service.target(way, family), ...(port === undefined ? {} : { port }), transport };
  const attempt = (): Promise<Attempt> => attemptWithWitness(site, from, { timeoutMs: SILENCE_MS, ...request });
  const first = await attempt();
  const { outcome } = first.outcome === "timeout" ? await attempt() : first;
  if (outcome !== "ok") return outcome;
  return inWords(
    site,
    await site
      .place(from)
      .agent()
      .burst({ timeoutMs: PATIENCE_MS, ...request, count: 80, concurrency: 4 }),
  );
}

/** Say in words what a tally holds. */
export function inWords(site: Site, tally: Tally): string {
  const servers = Object.keys(tally.servers).toSorted().join(" ");
  const clients = Object.keys(tally.clients)
    .map((address) => site.nameOf(address))
    .toSorted()
    .join(" ");
  const failed = Object.entries(tally.failed).map(([outcome, count]) => `, ${outcome} ${count} of ${tally.attempts}`);
  return `${servers} saw ${clients}${failed.join("")}`;
}

/**
 * Try every row of a table at once and give the words for each, to be compared with the table itself.
 *
 * Shape: a row's key is `from way`, `from way transport` or `from way transport port`; its value is what {@link reach} should say.
 */
export async function reachAll(
  site: Site,
  service: TestService,
  family: IPFamily,
  table: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const rows = await Promise.all(
    Object.keys(table).map(async (key): Promise<[string, string]> => [key, await reach(site, service, family, tryOf(key))]),
  );
  return Object.fromEntries(rows);
}

function tryOf(key: string): Try {
  const [from = "", way = "clusterIP", transport = "TCP", port] = key.split(" ");
  return { from, way: way as Way, transport: transport as Transport, ...(port === undefined ? {} : { port: Number(port) }) };
}
