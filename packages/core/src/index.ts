/**
 * The pure heart of Turnout: what the API says in, rows of destinations with ordered rules out, and the ledger that
 * keeps a host in step with them.
 *
 * Authors of backends need less: `@turnout/core/backend`, which is part of this.
 * @packageDocumentation
 */
export * from "./backend.ts";
export { abilitiesOf } from "./contract/capabilities.ts";
export type { Abilities, Capability } from "./contract/capabilities.ts";
export { demandOutcome, moduleFaults, parseModule } from "./contract/check-module.ts";
export { fitRow } from "./contract/fit-row.ts";
export { openDataplane, probeModule, withWorldOf } from "./contract/host-module.ts";
export { CAUSES } from "./explain/answer.ts";
export type { Answer, Cause, CauseId, Fate, FateEndpoint, Step, UnjudgedRule } from "./explain/answer.ts";
export { answerText } from "./explain/answer-text.ts";
export { explainPacket, withSurvey } from "./explain/explain-packet.ts";
export type { Survey } from "./explain/explain-packet.ts";
export { hitOf } from "./explain/hit.ts";
export { parseQuestion, serviceNamed } from "./explain/parse-question.ts";
export type { ParsedQuestion } from "./explain/parse-question.ts";
export { planRows, renderFamily, renderingText } from "./explain/rendering.ts";
export type { Rendering } from "./explain/rendering.ts";
export { ROW_COLUMNS, rowLines } from "./explain/row-text.ts";
export { walkPacket } from "./explain/walk.ts";
export type { Walk } from "./explain/walk.ts";
export { UNKNOWN_DEVICE } from "./explain/question.ts";
export type { AskedPacket, ExplainedState, HiddenService, KnownObjects, KnownSource } from "./explain/question.ts";
export { Backoff } from "./sync/backoff.ts";
export { cleanUpBackend } from "./sync/clean-up.ts";
export type { ProbedHost } from "./contract/host-module.ts";
export { wallMs, workMs } from "./contract/world.ts";
export type { ClockReading, ExecOptions, ExecResult, FinishOptions, StartedCommand } from "./contract/world.ts";
export { canonicalIP, cidrContains, clientNetwork, familyOf, parseCIDR, parseIP } from "./model/addresses.ts";
export type { CIDR, IP } from "./model/addresses.ts";
export { HIDING_LABELS, OBJECT_KINDS } from "./model/api-objects.ts";
export type { EndpointSlice, Issue, Node, ObjectKind, ServiceEventReason, ServiceIdentity, SliceEndpoint } from "./model/api-objects.ts";
export { applyChangeSet } from "./model/change-set.ts";
export { isEqual, withEqual } from "./model/equal.ts";
export { parseJSON } from "./model/json.ts";
export { ERROR_CODES, invariant, operatingError } from "./model/errors.ts";
export type { ErrorCode, ErrorDetails } from "./model/errors.ts";
export { tryInHalves } from "./model/halves.ts";
export { serviceHealth } from "./model/health.ts";
export { LOOPBACK_ADDRESS, namesLoopback, NODE_PORT_KEYWORDS } from "./model/node-port-addresses.ts";
export { haveManyEndpoints } from "./model/many-endpoints.ts";
export type { ServiceHealth } from "./model/health.ts";
export { isDNSName, listedNames, printableName, rowKey, serviceKeyOf } from "./model/names.ts";
export type {
  ChangeSet,
  DestinationKind,
  DetectLocal,
  Feed,
  NodeSettings,
  NodeState,
  ServicePortName,
  TopologyMode,
} from "./model/rows.ts";
export { Waiters } from "./model/waiters.ts";
export { RevisionLog } from "./model/revision-log.ts";
export { precedes } from "./policy/endpoints.ts";
export { lastingContext } from "./policy/lasting-node.ts";
export { DEFAULT_SETTINGS, detectorFor, nodeContextFor } from "./policy/node-context.ts";
export { createFeed, feedOf, NodeView } from "./state/node-view.ts";
export type { NodeViewOptions } from "./state/node-view.ts";
export { knownObjects } from "./state/known-objects.ts";
export { RecentRows } from "./state/recent-rows.ts";
export type { SharedRows } from "./state/row-blocks.ts";
export { ServiceTable } from "./state/service-table.ts";
export type { AllowedAddresses } from "./intake/allowed-addresses.ts";
export { Store } from "./state/store.ts";
export type { NodeChanges, TableView, TableViewOptions } from "./state/table-view.ts";
export { flowsToForget } from "./sync/flows/conntrack.ts";
export { Ledger } from "./sync/ledger.ts";
export type { SyncedEvent, SyncObserver } from "./sync/observer.ts";
export { NamespaceShares } from "./sync/turns/namespace-shares.ts";
export type { SharesOptions } from "./sync/turns/namespace-shares.ts";
export { SERVICE_ENTRIES_MAX, ServiceBound } from "./sync/service-bound.ts";
export type { ServiceBoundOptions } from "./sync/service-bound.ts";
export type { Refusal } from "./sync/reconciler.ts";
export { SyncLoop } from "./sync/sync-loop.ts";
export { WantedRows } from "./sync/wanted-rows.ts";
