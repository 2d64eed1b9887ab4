import { ProxyError, type IPFamily } from "@turnout/core";
import type { Agent, Attempt, NodePlace, TargetRequest } from "@turnout/lab";
import type { ChangeFinding } from "./findings.ts";
import { addressOf, portOf, type ShopService } from "./shop.ts";
import type { Stage } from "./stage.ts";

const GIVE_UP_MS = 15_000;
/**
 * A rejected SYN may show only when it is sent again after 1 s: the kernel ignores an ICMP error while it holds the socket.
 * So a question that waits for a refusal waits this long, and one that waits for an answer must ask anew much sooner.
 */
export const REFUSAL_MS = 2_500;
/** How long a question waits that is asked again if it is lost: briefly at first, longer where the machine turns out to be slow. */
const FIRST_RETRY_MS = 10;
const RETRY_GROWTH = 1.25;
const RETRY_MAX_MS = 100;

/**
 * Ask again and again until the answer is as wanted; how long it took in ms, or undefined after 15 s.
 *
 * Edges: an answer counts from when it arrived, any other outcome from when its question was sent. Without `timeoutMs` a
 * question waits a little longer than the lost one before it.
 */
export async function askUntil(
  stage: Stage,
  agent: Agent,
  request: TargetRequest,
  isWanted: (attempt: Attempt) => boolean,
  sinceMs: number = stage.nowMs(),
): Promise<number | undefined> {
  let timeoutMs = FIRST_RETRY_MS;
  for (;;) {
    const attempt = await agent.attempt({ timeoutMs, ...request });
    const tookMs = stage.nowMs() - sinceMs - (attempt.outcome === "ok" ? 0 : attempt.latencyMs);
    if (isWanted(attempt)) return tookMs;
    if (tookMs > GIVE_UP_MS) return undefined;
    if (attempt.outcome === "ok") continue;
    timeoutMs = Math.min(RETRY_MAX_MS, timeoutMs * RETRY_GROWTH);
    // A refusal comes back at once: don't spin.
    await stage.pause(1);
  }
}

/** A change to be timed. */
export interface TimedChange {
  readonly service: ShopService;
  readonly change: () => Promise<void>;
  readonly isWanted: (attempt: Attempt) => boolean;
  /** How long one question waits; default: see {@link askUntil}. */
  readonly timeoutMs?: number;
  /** Default all. */
  readonly nodes?: readonly NodePlace[];
}

/**
 * Do something and see how long each node's packets take to follow, in each family, counted from before it is done.
 *
 * Shape: asked from the nodes themselves, at the service's cluster IP, all at once.
 */
export async function timeChange(
  stage: Stage,
  { service, change, isWanted, timeoutMs, nodes = stage.cluster.nodes }: TimedChange,
): Promise<readonly ChangeFinding[]> {
  const sinceMs = stage.nowMs();
  await change();
  return await Promise.all(
    nodes.flatMap((node) =>
      stage.families.map(async (family: IPFamily): Promise<ChangeFinding> => {
        const request = { address: addressOf(service, "clusterIP", family), port: portOf(service), transport: service.protocol };
        const limits = timeoutMs === undefined ? {} : { timeoutMs };
        return { node: node.name, family, tookMs: await askUntil(stage, node.agent(), { ...request, ...limits }, isWanted, sinceMs) };
      }),
    ),
  );
}

/**
 * Start the proxies and wait until every one has the shop in force; how long it took in ms.
 * @throws {ProxyError} `tool_failed` with the end of its log when one ended or does not get there.
 */
export async function startAndWait(stage: Stage, service: ShopService): Promise<number> {
  const findings = await timeChange(stage, {
    service,
    change: () => Promise.resolve(stage.startProxies()),
    isWanted: ({ outcome }) => outcome === "ok",
  });
  for (const { node, family, tookMs } of findings) {
    if (tookMs !== undefined) continue;
    const proxy = stage.proxies.find((candidate) => candidate.node.name === node);
    const last = proxy?.log().trim().split("\n").at(-1) ?? "";
    throw new ProxyError("tool_failed", `turnout run does not program ${family}`, { object: node, hint: last });
  }
  return Math.max(...findings.map(({ tookMs }) => tookMs ?? 0));
}
