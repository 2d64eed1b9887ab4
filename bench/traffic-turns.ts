import type { CaseContext } from "./case.ts";
import type { RoleProcess } from "./role-process.ts";
import type { TrafficSamples } from "./roles/traffic.ts";
import { createTrafficNode } from "./traffic-nodes.ts";
import type { TrafficLength, TrafficNode, TrafficRules } from "./traffic-nodes.ts";
import { FROM } from "./traffic-targets.ts";
import type { TrafficFrom } from "./traffic-targets.ts";
import { shapeText } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** What one client measured. */
export interface TrafficData {
  readonly shape: Shape;
  /** Name of the rules of its node. */
  readonly rules: string;
  readonly from: TrafficFrom;
  readonly samples: TrafficSamples;
}

/** What is compared. */
export interface TrafficRun {
  readonly rules: readonly TrafficRules[];
  readonly shape: Shape;
  readonly from: readonly TrafficFrom[];
  readonly length: TrafficLength;
}

/** Make a node for each ruleset, all there at once, and let their clients take turns. */
export async function measureTraffic(
  { rules, shape, from, length }: TrafficRun,
  { progress }: Pick<CaseContext, "progress">,
): Promise<readonly TrafficData[]> {
  const nodes: TrafficNode[] = [];
  try {
    for (const one of rules) {
      progress(`${shapeText(shape)}: ${one.name}`);
      nodes.push(await createTrafficNode(one, shape));
    }
    const data: TrafficData[] = [];
    for (const place of from) {
      progress(`${shapeText(shape)}: traffic from ${FROM[place]}`);
      const clients = await Promise.all(nodes.map((node) => node.open(place, length)));
      const all = await takeTurns(clients);
      data.push(...nodes.map((node, k) => ({ shape, rules: node.rules.name, from: place, samples: all[k] as TrafficSamples })));
    }
    return data;
  } finally {
    for (const node of nodes) await node.destroy();
  }
}

/** Let clients measure, one at a time, each a slice after another; all have as many turns. Their results, in their order. */
async function takeTurns(clients: readonly RoleProcess[]): Promise<readonly unknown[]> {
  const results: unknown[] = [];
  while (results.length < clients.length) {
    for (const client of clients) {
      client.go();
      const message = await client.next();
      if (message.kind === "result") results.push(message.value);
    }
  }
  return results;
}
