import type { Clock, HiddenService } from "@turnout/core";
import { readStable, scanPath } from "./files/file-scan.ts";
import { readDocument, splitDocuments } from "./files/manifest.ts";
import { createKubeClient } from "./kube/kube-client.ts";
import { readList } from "./kube/list-page.ts";
import { resolveAccess, type AccessOptions } from "./kube/access/resolve-access.ts";
import { hiddenAmong, HIDING_LABEL } from "./source/hidden-among.ts";
import type { RawObject } from "./source/raw-object.ts";
import { selectionFor } from "./source/selectors.ts";
import type { ObjectSourceSpec } from "./node-state/source.ts";

/** What it takes to ask. */
export interface HiddenServicesOptions extends AccessOptions {
  readonly clock: Clock;
}

const IDLE_MS = 2_000;

/**
 * List the Services that are left to other proxies by their label: sources don't follow them, and people who ask why nothing serves them want to
 * know. There are few.
 * @throws {ProxyError} what can't be read, or the API server's refusal.
 */
export async function hiddenServices(
  spec: ObjectSourceSpec,
  options: HiddenServicesOptions,
  signal: AbortSignal,
): Promise<readonly HiddenService[]> {
  const objects = spec.kind === "kube" ? await fromServer(options, signal) : await fromFiles(spec.path);
  return hiddenAmong(objects);
}

async function fromServer(options: HiddenServicesOptions, signal: AbortSignal): Promise<readonly RawObject[]> {
  const { clock, env } = options;
  const client = createKubeClient({ access: resolveAccess(options), clock, connectTimeoutMs: IDLE_MS, answerTimeoutMs: IDLE_MS, env });
  try {
    const { path } = selectionFor("Service", undefined);
    const answer = await client.ask(
      { path: `${path}?${new URLSearchParams({ labelSelector: HIDING_LABEL }).toString()}`, idleMs: IDLE_MS },
      signal,
    );
    const found: RawObject[] = [];
    if (answer.kind === "open") await readList(answer.chunks, "Service", (service) => found.push(service));
    return found;
  } finally {
    client.close();
  }
}

async function fromFiles(path: string): Promise<readonly RawObject[]> {
  const found: RawObject[] = [];
  for (const file of (await scanPath(path)).files.keys()) {
    const { text } = await readStable(file);
    // To read all of it again would take as long as a start.
    for (const document of splitDocuments(text))
      if (document.text.includes(HIDING_LABEL)) found.push(...readDocument(document.text).hidden);
  }
  return found;
}
