import { fileURLToPath } from "node:url";
import type { KitOrder, KitResult } from "./kit-order.ts";
import { inNamespaces } from "./namespaces.ts";

const CHILD = fileURLToPath(new URL(`main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
/** An upper bound for a machine that is busy with other things, too. */
const TIMEOUT_MS = 3_600_000;

/** Have a part of the conformance kit be played on this kernel. @throws {Error} what kept it from being played. */
export async function runKit(order: KitOrder, signal?: AbortSignal): Promise<KitResult> {
  const args = [JSON.stringify(order)];
  return (await inNamespaces({ program: CHILD, args, timeoutMs: TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) })) as KitResult;
}
