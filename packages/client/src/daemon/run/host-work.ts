import type { BackendModule, Clock, Log, Rights } from "@turnout/core";
import { giveUpRights, type HostAccess } from "../host/give-up-rights.ts";
import { keepMemorySmall } from "../host/keep-memory-small.ts";
import type { HostSettings } from "../host/host-settings.ts";
import { wantedSettings } from "../host/host-settings.ts";
import { setHost, setMissing } from "../host/set-host.ts";

/** What is still to be done to the host besides rules. */
export interface HostWork {
  /** Give up rights, once the backend has looked at the host; resolves to the rest. */
  limit(): Promise<HostRest>;
}

/** What is to be done to the host once the proxy works. */
export interface HostRest {
  /** To be called when the rules are in force; resolves when there is nothing left to do. `lastSyncMs`: when something last was brought into force. */
  active(lastSyncMs: () => number, signal: AbortSignal): Promise<void>;
  /** To be called when rules of other proxies have been looked for. */
  standalone(): Promise<void>;
}

/** What the host is prepared with. */
export interface HostWorkOptions {
  readonly settings: HostSettings;
  /** Undefined: nothing is set, and nothing is given up. */
  readonly host: HostAccess | undefined;
  /** What is needed until rules of former proxies are gone. */
  readonly meanwhile: Rights;
  readonly clock: Clock;
  readonly log: Log;
}

const nothing = (): Promise<void> => Promise.resolve();

/**
 * Set on the host what kube-proxy sets at its start, before the backend is asked what it finds there.
 *
 * Edges: nothing is set for a backend whose rules live with the process.
 */
export function prepareHost(
  { residence, rights: needed }: Pick<BackendModule, "residence" | "rights">,
  { settings, host, meanwhile, clock, log }: HostWorkOptions,
): HostWork {
  if (host === undefined) return { limit: () => Promise.resolve({ active: nothing, standalone: nothing }) };
  const { files, rights, paths, memory } = host;
  const missing = residence === "kernel" ? setHost(wantedSettings(settings, files.cores), files, log) : [];
  return {
    async limit(): Promise<HostRest> {
      const standalone = rights === undefined ? nothing : await giveUpRights({ files, rights, paths, backend: needed, meanwhile, log });
      const active = async (lastSyncMs: () => number, signal: AbortSignal): Promise<void> => {
        setMissing(missing, files, log);
        if (memory !== undefined) await keepMemorySmall(memory, { clock, lastSyncMs }, signal);
      };
      return { active, standalone };
    },
  };
}
