/**
 * What Turnout's backends share about a Linux host: running programs, netlink, own addresses, kernel parameters, probes.
 *
 * Everything here touches the machine; its fakes are in `@turnout/host/testing`. For backends that use these tools there are also
 * `@turnout/host/iptables`, `/nft`, `/ipset` and `/ipvs`, with fakes in `@turnout/fakes/iptables` and so on, and `/bpf`.
 * @packageDocumentation
 */
export { readHostAddresses } from "./addresses/host-addresses.ts";
export type { HostAddresses } from "./addresses/host-addresses.ts";
export { OwnAddresses } from "./addresses/own-addresses.ts";
export type { OwnDevice } from "./addresses/own-addresses.ts";
export { Mutex } from "./netlink/mutex.ts";
export { createExec } from "./exec/exec.ts";
export { installHint } from "./exec/tool-packages.ts";
export { Inbox } from "./watch/inbox.ts";
export type { Netlink } from "./netlink/netlink.ts";
export type { Device, DeviceRoute } from "./netlink/devices.ts";
export type { HostAddress } from "./netlink/host-addresses.ts";
export { EchoCount, OwnCommits } from "./watch/own-commits.ts";
export type { CommitMark } from "./watch/own-commits.ts";
export { FingerprintWatch } from "./watch/fingerprint-watch.ts";
export type { FingerprintChanges, Fingerprints } from "./watch/fingerprint-watch.ts";
export type { NftChain, NftHook } from "./netlink/nft/nft-chains.ts";
export type { Flow } from "./netlink/conntrack/flow-list.ts";
export { readNftKey } from "./netlink/nft/nft-elements.ts";
export type { NftElement } from "./netlink/nft/nft-elements.ts";
export type { NftElementQuestion, NftPartsQuestion } from "./netlink/nft/nft-parts.ts";
export type { NftTable, NftTableChain, NftTableSink } from "./netlink/nft/nft-table.ts";
export type { NftChange } from "./netlink/nft/nft-changes.ts";
export type { NftEvent } from "./netlink/nft/nft-events.ts";
export { trimMemory } from "./memory/trim-memory.ts";
export { createProcessRights } from "./rights/process-rights.ts";
export { createLinuxWorld, createWorld } from "./world.ts";
export type { LinuxWorld } from "./world.ts";
export { hasCapability, hasNetAdmin, isRootStatus, isAtLeast, nftVersion, parseKernelVersion, probeHost } from "./facts/probes.ts";
export type { HostProbe, Version } from "./facts/probes.ts";
export { readParameter, readParameters, setParameter } from "./facts/parameters.ts";
export { IPTABLES_TABLES } from "./netlink/nft/nft-tables.ts";
export type { NftTableName } from "./netlink/nft/nft-tables.ts";
export { errno } from "./netlink/errno.ts";
export { createNetlink } from "./netlink/netlink.ts";
