import type { CountName, Counts } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import type { FamilyProcess } from "../runner/family-process.ts";
import type { Runner } from "../runner/runner.ts";
import { addressesOf, refs, service, SERVICE_PORT, slices } from "../runner/short.ts";
import { stagePeer } from "../runner/stage.ts";
import type { Complain } from "./findings.ts";

/** Connections to one Service, and others to a second. */
const CONNECTIONS = [7, 3] as const;
const NAMES: ReadonlySet<string> = new Set<CountName>([
  "connections",
  "datagrams",
  "bytesIn",
  "bytesOut",
  "rejects",
  "dropsWithoutLocal",
  "dropsOutsideRanges",
]);

/**
 * Look whether a backend counts what it should: whole numbers, of objects that rows own, no others, and for each Service its own connections.
 *
 * Shape: for a player with one family, started with the module's `countingOptions`; `counted` is how many connections the dataplane's counters have
 * counted, where the host tells.
 * Edges: where it doesn't, that nothing shrinks is all that is asked of numbers.
 */
export async function checkCounts(
  runner: Runner,
  { counted, random }: { readonly counted: (() => number) | undefined; readonly random: () => number },
  complain: Complain,
): Promise<void> {
  const [life] = runner.processes;
  if (life === undefined) return;
  if (!life.countsObjects) return complain("countingOptions without counts()", "counts() with them", "there is none");
  for (const number of [1, 2]) for (const raw of objectsOf(number)) runner.put(raw);
  const [report] = await runner.sync();
  // A host that counts nothing may know nothing of what counts.
  if (report?.error !== undefined && counted === undefined) return;
  if (report?.error !== undefined) return complain("a sync with countingOptions", "everything in force", textOf(report.error));
  let before = await look(life, complain);
  for (const [index, count] of CONNECTIONS.entries()) {
    const known = counted?.() ?? 0;
    for (let made = 0; made < count; made++) runner.host.connect(packetTo(index + 1, life), random);
    const after = await look(life, complain);
    const grown = growthOf(life, before, after, complain);
    const [wanted, found] = [(counted?.() ?? 0) - known, grown.get(`kit/${nameOf(index + 1)}`) ?? 0];
    const others = [...grown].filter(([name, more]) => name !== `kit/${nameOf(index + 1)}` && more > 0);
    if (counted !== undefined && found !== wanted)
      complain(
        `connections that counts() tells of after ${count} to one Service`,
        `${wanted} more, as the host has counted`,
        `${found} more`,
      );
    for (const [name, more] of others.slice(0, 1))
      complain("connections that counts() tells of another Service", "none more", `${more} more of ${name}`);
    before = after;
  }
  for (const ref of refs(nameOf(2))) runner.remove(ref);
  await runner.sync();
  await look(life, complain);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const nameOf = (number: number): string => `counted-${number}`;

function objectsOf(number: number): ReturnType<typeof slices> {
  return [service(nameOf(number), { number }), ...slices(nameOf(number), ["pod-1-1", "pod-2-1"])];
}

function packetTo(number: number, { family }: FamilyProcess): Packet {
  const { addresses, link } = stagePeer("pod-1-2");
  return {
    family,
    protocol: "TCP",
    source: addresses[family],
    destination: addressesOf(number, "clusterIP")[family],
    port: SERVICE_PORT,
    link,
  };
}

/** What is counted now; what can't be is complained of. */
async function look(life: FamilyProcess, complain: Complain): Promise<ReadonlyMap<string, Counts>> {
  const counts = await life.counts();
  const owners = life.owners();
  const unknown = [...counts.keys()].filter((id) => !owners.has(id));
  if (unknown.length > 0)
    complain("what counts() names", "objects that rows own", `${unknown[0]}${unknown.length > 1 ? ` and ${unknown.length - 1} more` : ""}`);
  for (const [id, of] of counts)
    for (const [name, count] of Object.entries(of))
      if (!NAMES.has(name)) complain(`what counts() tells of ${id}`, "a count that the contract knows", name);
      else if (!Number.isSafeInteger(count) || count < 0)
        complain(`${name} that counts() tells of ${id}`, "a whole number that is not negative", String(count));
  return counts;
}

/** How many connections more there are of each Service. */
function growthOf(
  life: FamilyProcess,
  before: ReadonlyMap<string, Counts>,
  after: ReadonlyMap<string, Counts>,
  complain: Complain,
): ReadonlyMap<string, number> {
  const owners = life.owners();
  const grown = new Map<string, number>();
  for (const id of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(id)?.connections ?? 0, after.get(id)?.connections ?? 0];
    if (is < was) complain(`connections that counts() tells of ${id}, while nothing changes`, `${was} or more`, String(is));
    const owner = owners.get(id) ?? "";
    grown.set(owner, (grown.get(owner) ?? 0) + is - was);
  }
  return grown;
}
