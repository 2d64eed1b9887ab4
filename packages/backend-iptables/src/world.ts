import type { World } from "@turnout/core/backend";
import { createLinuxWorld } from "@turnout/host";
import type { LinuxWorld } from "@turnout/host";
import { rememberLookup } from "@turnout/host/iptables";
import type { IptablesMemory } from "@turnout/host/iptables";

/** What this backend touches: a Linux host, of which is remembered which programs of iptables it uses. */
export type IptablesWorld = LinuxWorld & IptablesMemory;

/** Touches nothing yet. */
export function createIptablesWorld(base: World): IptablesWorld & { close(): void } {
  const linux = createLinuxWorld(base);
  return { ...linux, rememberedLookup: rememberLookup(linux.exec) };
}
