import type { RoleProcess } from "./role-process.ts";
import type { TrafficSample, TrafficSamples } from "./roles/traffic.ts";
import { median } from "./statistics.ts";
import type { TrafficRules } from "./traffic-nodes.ts";

/** What a client measured, and under which rules. */
export interface MeasuredClient {
  readonly rules: TrafficRules;
  readonly samples: TrafficSamples;
}

/** A client, and under which rules it is. */
export interface PlacedClient {
  readonly rules: TrafficRules;
  readonly client: RoleProcess;
}

/** Let clients measure, one at a time, each one thing after another; all have as many turns. */
export async function takeTurns(clients: readonly PlacedClient[]): Promise<readonly MeasuredClient[]> {
  const results: MeasuredClient[] = [];
  while (results.length < clients.length) {
    for (const { rules, client } of clients) {
      client.go();
      const message = await client.next();
      if (message.kind === "result") results.push({ rules, samples: message.value as TrafficSamples });
    }
  }
  return results;
}

/** The median of what one measure came to for a target, over all rounds. */
export function medianOf(samples: TrafficSamples, target: string, measure: string, of: keyof TrafficSample = "perSecond"): number {
  return median((samples.rates[target]?.[measure] ?? []).map((sample) => sample[of]));
}
