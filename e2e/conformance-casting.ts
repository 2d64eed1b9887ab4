import { createHash } from "node:crypto";
import { SCENARIOS } from "@turnout/conformance";
import type { Scenario } from "@turnout/conformance";
import { abilitiesOf } from "@turnout/core";
import type { BackendModule, IPFamily, Protocol } from "@turnout/core";
import { isFullRun, isRestRun, shareSeed, someOf } from "@turnout/house/some-of";
import type { Cast } from "./conformance-run.ts";
import { settingsKey } from "./conformance-pool.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
/** Every family with every protocol, instead of one of them by hash and date. */
export const isFull: boolean = isFullRun();

/** Those that a backend can be asked for, with equal settings side by side: all of them, or one of so many where `npm test` runs them. */
export function scenariosFor(module: BackendModule, oneOf = 1): readonly Scenario[] {
  const able = SCENARIOS.filter(({ needs: wanted = [] }) => wanted.every((one) => abilitiesOf(module).capabilities[one] === true));
  return someOf(able, { oneOf, isKernelKit: true }).toSorted((a, b) => settingsKey(a).localeCompare(settingsKey(b)));
}

/**
 * The families and protocols to play a scenario in: all that the backend has, or one of them, chosen by name and date. `inBothFamilies`:
 * `npm run test:rest` plays this protocol in each family.
 */
export function castsOf(
  { name, families = FAMILIES, protocols = PROTOCOLS }: Scenario,
  module: BackendModule,
  inBothFamilies = false,
): readonly Cast[] {
  const casts = families.flatMap((family) => protocols.map((protocol): Cast => ({ family, protocol })));
  const { capabilities } = abilitiesOf(module);
  const able = casts.filter(({ family, protocol }) => capabilities[family] === true && capabilities[protocol] === true);
  if (isFull || able.length === 0) return able;
  const chosen = able[(hashOf(name) + shareSeed()) % able.length];
  return able.filter((cast) => cast === chosen || (inBothFamilies && isRestRun() && cast.protocol === chosen?.protocol));
}

/** What a scenario's test says behind its name: the one family and protocol it is played in, if it is one. */
export function castInWords([only, ...others]: readonly Cast[]): string {
  return only === undefined || others.length > 0 ? "" : ` (${only.family} ${only.protocol})`;
}

function hashOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE();
}
