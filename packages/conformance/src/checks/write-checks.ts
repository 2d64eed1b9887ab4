import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import type { Runner } from "../runner/runner.ts";
import { service, slices } from "../runner/short.ts";
import { SERVER_PORT } from "../runner/stage.ts";
import { differenceOf } from "./health-checks.ts";
import type { Complain } from "./findings.ts";

/** Endpoints of the Service that gets one more. */
const ENDPOINTS = 40;
/** Services beside it that stay as they are, and the number of the first: enough that writing them again shows whatever an object is. */
const OTHERS = 8;
const FIRST_OTHER = 21;
/** What a change may write beside what it changes: things that are deleted and made anew count twice, and something around them is written, too. */
const TIMES_MAX = 2;
const MORE_MAX = 16;

/** Look whether one endpoint of one Service that comes or goes has what stays as it is written again; `written` is the host's count. */
export async function checkWrites(runner: Runner, written: () => number, complain: Complain): Promise<void> {
  const { host } = runner;
  for (const raw of [...objectsOf(runner, addresses(ENDPOINTS)), ...otherObjects()]) runner.put(raw);
  await runner.sync();
  const more = addresses(ENDPOINTS + 1);
  for (const { what, endpoints } of [
    { what: `endpoint ${ENDPOINTS + 1} of a Service`, endpoints: more },
    { what: "the removal of its second endpoint", endpoints: more.toSpliced(1, 1) },
    { what: "the return of that endpoint", endpoints: more },
  ]) {
    const [own, known] = [host.own(), written()];
    for (const raw of objectsOf(runner, endpoints)) runner.put(raw);
    await runner.sync();
    const count = written() - known;
    const different = differenceOf(own, host.own());
    if (count <= TIMES_MAX * different.length + MORE_MAX) continue;
    complain(`what is written for ${what}`, `about as much as changes: ${different.length}`, String(count));
  }
}

/** The numbers of endpoints. */
function addresses(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function otherObjects(): readonly RawObject[] {
  return Array.from({ length: OTHERS }, (_, index) => FIRST_OTHER + index).flatMap((number) => [
    service(`other-${number}`, { number }),
    ...slices(`other-${number}`, ["pod-1-1"]),
  ]);
}

function objectsOf({ processes }: Runner, endpoints: readonly number[]): readonly RawObject[] {
  const families = FAMILIES.filter((one) => processes.some(({ family }) => family === one));
  return [service("many", { number: 9, ways: ["nodePort"] }), ...families.map((family) => sliceOf(family, endpoints))];
}

function sliceOf(family: IPFamily, numbers: readonly number[]): RawObject {
  const addressOf = (index: number): string => (family === "IPv4" ? `10.1.9.${101 + index}` : `fd00:1:9::${(257 + index).toString(16)}`);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: "kit", name: `many-${family.toLowerCase()}`, labels: { "kubernetes.io/service-name": "many" } },
    addressType: family,
    ports: (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: SERVER_PORT })),
    endpoints: numbers.map((index) => ({ addresses: [addressOf(index)], nodeName: "node2" })),
  };
}
