import { SERVER_PORT, STAGE_NODE, placeNameOf } from "./stage.ts";
import type { Verdict } from "../oracle/packet.ts";

/** Servers that see one and the same source: names of places, with a port where it isn't the stage's ({@link serverName}). */
export interface SeenGroup {
  readonly servers: readonly string[];
  /** Name of the place whose address they see. */
  readonly saw: string;
}

/** What became of a packet, as a probe's words say it; `groups` is empty unless it was forwarded. */
export interface Seen {
  readonly is: Verdict["is"];
  readonly groups: readonly SeenGroup[];
}

const PLAIN: Readonly<Record<string, Verdict["is"]>> = { refused: "reject", dropped: "drop", untouched: "pass" };

/**
 * Read the words of a probe's `sees`, e.g. `pod-1-1 saw node1, pod-2-1 saw pod-1-1`.
 *
 * Edges: no server may stand in it twice; the order doesn't matter.
 * @throws {Error} when they are not of that form.
 */
export function parseWords(words: string): Seen {
  const plain = PLAIN[words];
  if (plain !== undefined) return { is: plain, groups: [] };
  const groups = words.split(", ").map((part): SeenGroup => {
    const [, servers = "", saw = ""] = /^([^ ,]+(?: [^ ,]+)*) saw ([^ ,]+)$/.exec(part) ?? [];
    if (servers === "") throw new Error(`not the words of a probe: ${JSON.stringify(words)}`);
    return { servers: servers.split(" "), saw };
  });
  const servers = groups.flatMap((group) => group.servers);
  if (servers.length !== new Set(servers).size) throw new Error(`a server stands twice in ${JSON.stringify(words)}`);
  return { is: "forward", groups };
}

/** Write what was seen in the words of a probe; one form for all that mean the same: groups and servers are sorted, groups that saw one are joined. */
export function formatWords({ is, groups }: Seen): string {
  if (is !== "forward") return Object.keys(PLAIN).find((words) => PLAIN[words] === is) ?? is;
  const bySource = new Map<string, Set<string>>();
  for (const { servers, saw } of groups) bySource.set(saw, new Set([...(bySource.get(saw) ?? []), ...servers]));
  const joined = [...bySource].map(([saw, servers]) => `${[...servers].toSorted().join(" ")} saw ${saw}`);
  return joined.toSorted().join(", ");
}

/**
 * Say a verdict on a packet in the words of a probe.
 * @param source the packet's source address
 */
export function seenOfVerdict(verdict: Verdict, source: string): Seen {
  if (verdict.is !== "forward") return { is: verdict.is, groups: [] };
  return { is: "forward", groups: verdict.answers.map(({ endpoint, masquerade }) => seenAt(endpoint, masquerade, source)) };
}

/** Say in the words of a probe that one endpoint (`ip:port`) got a packet. */
export function seenAt(endpoint: string, masquerade: boolean, source: string): SeenGroup {
  return { servers: [serverName(endpoint)], saw: masquerade ? STAGE_NODE : placeNameOf(source) };
}

/** Name who serves an endpoint: the place (or the address where nobody is), and `:port` unless it is the stage's server port. */
export function serverName(endpoint: string): string {
  const colon = endpoint.lastIndexOf(":");
  const host = endpoint.slice(0, colon);
  const name = placeNameOf(host.replace(/^\[(.*)\]$/, "$1"));
  const isPlace = name !== host && !host.includes(`[${name}]`);
  const port = Number(endpoint.slice(colon + 1));
  return port === SERVER_PORT ? name : `${isPlace ? name : host}:${port}`;
}
