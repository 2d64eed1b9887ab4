import { ProxyError, type IPFamily } from "@turnout/core";
import type { Agent, Attempt, NodePlace, TargetRequest } from "@turnout/lab";
import type { ChangeFinding } from "./findings.ts";
import { addressOf, portOf, type ShopService } from "./shop.ts";
import type { Stage } from "./stage.ts";

const GIVE_UP_MS = 15_000;
/** Well above an answer's time, well below the second after which a SYN is sent again. */
const ATTEMPT_MS = 250;

/** Ask again and again until the answer is as wanted; how long it took in ms, or undefined after 15 s. */
export async function askUntil(
  stage: Stage,
  agent: Agent,
  request: TargetRequest,
  isWanted: (attempt: Attempt) => boolean,
  sinceMs: number = stage.nowMs(),
): Promise<number | undefined> {
  for (;;) {
    const attempt = await agent.attempt({ timeoutMs: ATTEMPT_MS, ...request });
    const tookMs = stage.nowMs() - sinceMs;
    if (isWanted(attempt)) return tookMs;
    if (tookMs > GIVE_UP_MS) return undefined;
    // A refusal comes back at once: don't spin.
    await stage.pause(attempt.outcome === "ok" ? 0 : 1);
  }
}

/**
 * Do something and see how long each node's packets take to follow, in each family, counted from before it is done.
 *
 * Shape: asked from the nodes themselves, at the service's cluster IP, all at once.
 */
export async function timeChange(
  stage: Stage,
  service: ShopService,
  change: () => Promise<void>,
  isWanted: (attempt: Attempt) => boolean,
  nodes: readonly NodePlace[] = stage.cluster.nodes,
): Promise<readonly ChangeFinding[]> {
  const sinceMs = stage.nowMs();
  await change();
  return await Promise.all(
    nodes.flatMap((node) =>
      stage.families.map(async (family: IPFamily): Promise<ChangeFinding> => {
        const request = { address: addressOf(service, "clusterIP", family), port: portOf(service), transport: service.protocol };
        return { node: node.name, family, tookMs: await askUntil(stage, node.agent(), request, isWanted, sinceMs) };
      }),
    ),
  );
}

/**
 * Start the proxies and wait until every one has the shop in force; how long it took in ms.
 * @throws {ProxyError} `tool_failed` with the end of its log when one ended or does not get there.
 */
export async function startAndSettle(stage: Stage, service: ShopService): Promise<number> {
  const findings = await timeChange(stage, service, () => Promise.resolve(stage.startProxies()), (attempt) => attempt.outcome === "ok");
  for (const { node, family, tookMs } of findings) {
    if (tookMs !== undefined) continue;
    const proxy = stage.proxies.find((candidate) => candidate.node.name === node);
    const last = proxy?.log().trim().split("\n").at(-1) ?? "";
    throw new ProxyError("tool_failed", `turnout run does not program ${family}`, { object: node, hint: last });
  }
  return Math.max(...findings.map(({ tookMs }) => tookMs ?? 0));
}
