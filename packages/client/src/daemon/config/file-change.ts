import type { Clock } from "@turnout/core";
import type { FileText } from "./loaded-config.ts";

const POLL_MS = 2_000;

/**
 * Wait until a file's text is no longer what it was.
 *
 * Edges: looks every 2 s instead of watching, which also sees a ConfigMap's symlink swap; a file that is missing or
 * unreadable for a moment is not a change. Resolves to false when `signal` aborts first.
 * @source kube-proxy cmd/kube-proxy/app/options.go initWatcher
 */
export async function fileChanged(
  file: FileText,
  read: (path: string) => Promise<string | undefined>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    await clock.sleep(POLL_MS, signal);
    if (signal.aborted) break;
    const text = await read(file.path);
    if (text !== undefined && text !== file.text) return true;
  }
  return false;
}
