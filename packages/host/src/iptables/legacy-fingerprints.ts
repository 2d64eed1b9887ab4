import type { Clock, IPFamily } from "@turnout/core";
import type { FingerprintChanges, Fingerprints } from "../watch/fingerprint-watch.ts";
import { FingerprintWatch } from "../watch/fingerprint-watch.ts";
import type { TableName } from "./text/objects.ts";
import type { IptablesTool } from "./tool.ts";

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];

/** What signs of the legacy variant are read with. */
export interface LegacyFingerprintOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly tool: Pick<IptablesTool, "variant">;
  readonly netlink: {
    /** How much a table holds; undefined: there is none. @throws {ProxyError} */
    legacyTableInfo(
      family: IPFamily,
      table: string,
    ): { readonly entries: number; readonly bytes: number; readonly offsets: readonly number[] } | undefined;
  };
}

/**
 * Watch how much the tables of the legacy variant hold, of which the kernel notifies nobody. Where the other variant is in use nothing is looked at.
 *
 * Edges: what is replaced by rules of the same size, as many as before, is no sign.
 */
export function legacyFingerprints({ family, clock, tool, netlink }: LegacyFingerprintOptions): FingerprintWatch {
  const look = (): Fingerprints => {
    if (tool.variant !== "legacy") return new Map();
    return new Map(
      TABLES.flatMap((table) => {
        const info = netlink.legacyTableInfo(family, table);
        return info === undefined ? [] : [[table, [info.entries, info.bytes, ...info.offsets].join(" ")] as const];
      }),
    );
  };
  return new FingerprintWatch({ clock, look });
}

/** Say which tables have changed, for people; the kernel doesn't know by whom. Pure. */
export function explainLegacyFingerprints(changes: FingerprintChanges): string {
  const entries = (text: string | undefined): string => text?.split(" ")[0] ?? "none";
  const tables = Array.from(changes, ([table, { before, now }]) => `${table} (${entries(now)} entries instead of ${entries(before)})`);
  return `legacy iptables changed in table ${tables.join(", ")}; the kernel does not tell by whom`;
}
