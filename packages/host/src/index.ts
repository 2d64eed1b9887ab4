/**
 * What Turnout's backends share about a Linux host: running programs, netlink, sysctls, probes.
 *
 * Everything here touches the machine; its fakes are in `@turnout/host/testing`.
 * @packageDocumentation
 */
export { createExec } from "./exec/exec.ts";
export { Inbox } from "./watch/inbox.ts";
export { complainedLine, iptablesError, isLockHeld } from "./iptables/errors.ts";
export { restoreIptables, runLocked } from "./iptables/restore.ts";
export type { LockedRun } from "./iptables/restore.ts";
export { chooseIptables, findIptables, iptablesName, parseIptablesVersion } from "./iptables/tools.ts";
export type { InstalledIptables, IptablesChoice, IptablesProgram, IptablesVariant } from "./iptables/tools.ts";
export { installHint, TOOL_PACKAGES } from "./exec/tool-packages.ts";
export { createNetlink } from "./netlink/netlink.ts";
export type { HostNetlink } from "./netlink/netlink.ts";
export { EchoCount, OwnCommits, ownCommitsOf } from "./nft/own-commits.ts";
export type { CommitMark } from "./nft/own-commits.ts";
export type { NftEvent } from "./nft/nft-events.ts";
export { createWorld } from "./world.ts";
export type { HostWorld } from "./world.ts";
export { hasCapability, isAtLeast, isRootStatus, parseKernelVersion, parseNftVersion, probeHost } from "./facts/probes.ts";
export type { HostProbe, ReadText, Version } from "./facts/probes.ts";
export { createSysctl, sysctlPath } from "./facts/sysctl.ts";
export type { Sysctl } from "./facts/sysctl.ts";
