import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import type { Player } from "../play/player.ts";
import { service } from "../play/short.ts";
import { SERVER_PORT } from "../play/stage.ts";
import { differenceOf } from "./health-checks.ts";
import type { Complain } from "./findings.ts";

/** Endpoints of the Service that gets one more. */
const ENDPOINTS = 40;
/** What a change may write beside what it changes: things that are deleted and made anew count twice, and something around them is written, too. */
const TIMES_MAX = 2;
const MORE_MAX = 16;

/**
 * Look whether one endpoint more has what stays as it is written again.
 *
 * Edges: nothing is looked at where the host doesn't count what is written, because its dataplane takes everything as a whole.
 */
export async function checkWrites(player: Player, complain: Complain): Promise<void> {
  const { host } = player;
  if (host.written === undefined) return;
  for (const raw of objectsOf(player, ENDPOINTS)) player.put(raw);
  await player.sync();
  const [own, known] = [host.own(), host.written()];
  for (const raw of objectsOf(player, ENDPOINTS + 1)) player.put(raw);
  await player.sync();
  const written = host.written() - known;
  const different = differenceOf(own, host.own());
  if (written <= TIMES_MAX * different.length + MORE_MAX) return;
  const what = `what is written for endpoint ${ENDPOINTS + 1} of a Service`;
  complain(what, `about as much as changes: ${different.length}`, String(written));
}

function objectsOf({ processes }: Player, count: number): readonly RawObject[] {
  const families = FAMILIES.filter((one) => processes.some(({ family }) => family === one));
  return [service("many", { number: 9, ways: ["nodePort"] }), ...families.map((family) => sliceOf(family, count))];
}

function sliceOf(family: IPFamily, count: number): RawObject {
  const addressOf = (index: number): string => (family === "IPv4" ? `10.1.9.${101 + index}` : `fd00:1:9::${(257 + index).toString(16)}`);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: "kit", name: `many-${family.toLowerCase()}`, labels: { "kubernetes.io/service-name": "many" } },
    addressType: family,
    ports: (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: SERVER_PORT })),
    endpoints: Array.from({ length: count }, (_, index) => ({ addresses: [addressOf(index)], nodeName: "node2" })),
  };
}
