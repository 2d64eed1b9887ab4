/**
 * The door for authors of backends: the contract, the rows it is given, and the few functions that every backend needs.
 *
 * Start with {@link BackendModule}; docs/write-a-backend.md goes through it. What may change while the contract stays the same is in
 * docs/contract.md.
 * @packageDocumentation
 */
export { objectId } from "./contract/backend.ts";
export type {
  Backend,
  BackendMetric,
  CountName,
  Counts,
  BackendModule,
  Capacity,
  Content,
  Context,
  Dataplane,
  Delta,
  Drift,
  Due,
  HostEvent,
  HostReport,
  KernelObject,
  Leftover,
  LeftObjects,
  Rights,
  Lingering,
  ObjectWords,
  Observed,
  Outcome,
  Plain,
  Plan,
  Put,
  SeenPart,
  Turn,
  WhatIsLeft,
} from "./contract/backend.ts";
export { defineBackend } from "./contract/define-backend.ts";
export type { BackendDefinition } from "./contract/define-backend.ts";
export { kindsOf, listOption, numberOption, readOptions, switchOption, textOption, wordOption } from "./contract/declared-options.ts";
export type { OptionOf, OptionsOf } from "./contract/declared-options.ts";
export { refuseUnknownOptions } from "./contract/options.ts";
export type { OptionKind, OptionKinds } from "./contract/options.ts";
export { ALL_CAPABILITIES } from "./contract/capabilities.ts";
export type { Capabilities, Variants } from "./contract/capabilities.ts";
export type { Clock, Exec, FlowFilter, Log, World } from "./contract/world.ts";
export { canonicalIP, cidrContains, hostPort, parseCIDR, parseIP, unusableReason } from "./model/addresses.ts";
export { tryInHalves } from "./model/halves.ts";
export { keepPlaces } from "./model/places.ts";
export { FAMILIES } from "./model/api-objects.ts";
export type { IPFamily, Protocol } from "./model/api-objects.ts";
export { ProxyError } from "./model/errors.ts";
export { LOOPBACK_ADDRESS, namesLoopback, nodePortAddresses } from "./model/node-port-addresses.ts";
export type { Destination, Endpoint, LocalDetector, NodeContext, Origin, Rule, ServicePort, Target } from "./model/rows.ts";
