import { ProxyError } from "../model/errors.ts";
import { objectId } from "./backend.ts";
import type { Backend, BackendModule, Delta, KernelObject, Observed, Outcome } from "./backend.ts";
import { abilityFaults, valueText } from "./capabilities.ts";
import { OPTION_KINDS } from "./options.ts";

/** The contract that this core keeps. */
const CONTRACT = 2;

/** What one member has to be; undefined: it is. */
type Rule = (value: unknown) => string | undefined;

const rule =
  (wanted: string, isRight: (value: unknown) => boolean): Rule =>
  (value) =>
    isRight(value) ? undefined : wanted;
const optional =
  (inner: Rule): Rule =>
  (value) =>
    value === undefined ? undefined : inner(value);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const FUNCTION = rule("a function", (value) => typeof value === "function");
const TEXT = rule("a text", (value) => typeof value === "string" && value !== "");
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((one) => typeof one === "string");

const isTextTable = (value: unknown): boolean => isObject(value) && Object.values(value).every((one) => typeof one === "string");

const isKinds = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every((kind) => OPTION_KINDS.some((one) => one === kind));

const MODULE: Readonly<Record<Exclude<keyof BackendModule, "contract" | "variants">, Rule>> = {
  name: TEXT,
  residence: rule('"kernel" or "process"', (value) => value === "kernel" || value === "process"),
  capabilities: rule("an object", (value) => typeof value === "object" && value !== null),
  nodePortAddressesDefault: optional(rule("a list of texts", isTexts)),
  proxyMode: optional(TEXT),
  serviceEntriesMax: optional(rule("a whole number from 1", (value) => Number.isSafeInteger(value) && Number(value) >= 1)),
  countingOptions: optional(rule("an object", isObject)),
  rights: optional(rule("an object of texts", isTextTable)),
  createWorld: optional(FUNCTION),
  options: optional(rule("an object of kinds of options", isKinds)),
  parseOptions: FUNCTION,
  probe: FUNCTION,
  open: FUNCTION,
};

/**
 * Say what keeps a value from being a backend module; empty: nothing. Pure, never throws.
 *
 * Edges: a module of another contract is told that alone: what else it has is for that one. Members and names that this core doesn't know count
 * for nothing, so that a backend written for a newer core of the same contract loads.
 */
export function moduleFaults(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [value === undefined ? "nothing is exported" : `it is ${valueText(value)}`];
  const module: Readonly<Record<string, unknown>> = { ...membersOf(value, ["contract", "variants", ...Object.keys(MODULE)]) };
  const { contract, capabilities, variants } = module;
  if (contract === undefined) return [`contract is missing, this is ${CONTRACT}`];
  if (contract !== CONTRACT) return [`contract ${valueText(contract)}, this is ${CONTRACT}`];
  const isTable = MODULE.capabilities(capabilities) === undefined;
  return [...memberFaults(module, MODULE), ...abilityFaults({ capabilities: isTable ? capabilities : undefined, variants })];
}

/** Inherited members count: a module may be a class's instance. */
function membersOf(value: object, names: readonly string[]): Readonly<Record<string, unknown>> {
  const members = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(names.map((name) => [name, members[name]]));
}

function memberFaults(members: Readonly<Record<string, unknown>>, rules: Readonly<Record<string, Rule>>): readonly string[] {
  return Object.entries(rules).flatMap(([name, check]) => {
    const value = members[name];
    const wanted = check(value);
    if (wanted === undefined) return [];
    return [value === undefined ? `${name} is missing` : `${name} is ${valueText(value)}, not ${wanted}`];
  });
}

/**
 * Take a value for a backend module.
 * @param object what people call it, e.g. `backend ./mine.mjs`
 * @throws {ProxyError} `invalid_object` with everything that is wrong with it, in one line.
 */
export function parseModule(value: unknown, object: string): BackendModule {
  const faults = moduleFaults(value);
  if (faults.length === 0) return value as BackendModule;
  throw new ProxyError("invalid_object", `this is no backend module: ${faults.join("; ")}`, {
    object,
    hint: "its default export has to be a BackendModule of @turnout/core/backend",
  });
}

const DATAPLANE: Readonly<Record<string, Rule>> = { family: FUNCTION, close: FUNCTION };
const BACKEND: Readonly<Record<string, Rule>> = {
  skeleton: FUNCTION,
  render: FUNCTION,
  plan: FUNCTION,
  observe: FUNCTION,
  apply: FUNCTION,
  isShared: optional(FUNCTION),
  keepPlaces: optional(FUNCTION),
  isOptional: optional(FUNCTION),
  lookup: optional(FUNCTION),
  describe: optional(FUNCTION),
  isWayIn: optional(FUNCTION),
  unserved: optional(FUNCTION),
  explain: optional(FUNCTION),
  forgetFlows: optional(FUNCTION),
  watch: optional(FUNCTION),
  reportsDrift: optional(rule("true or false", (value) => typeof value === "boolean")),
  looksUpCheaply: optional(rule("true or false", (value) => typeof value === "boolean")),
  metrics: optional(FUNCTION),
  counts: optional(FUNCTION),
  capacities: optional(FUNCTION),
  cleanup: optional(FUNCTION),
  leftovers: optional(FUNCTION),
};

/** Hold what a backend gave back against what it should be. @throws {Error} a defect of the backend, everything in one line. */
function demand(who: string, value: unknown, rules: Readonly<Record<string, Rule>>): void {
  const hasMembers = typeof value === "object" && value !== null;
  const faults = hasMembers ? memberFaults(membersOf(value, Object.keys(rules)), rules) : [`it is ${valueText(value)}, not an object`];
  if (faults.length > 0) throw new Error(`defect of the backend: what ${who} gave back is wrong: ${faults.join("; ")}`);
}

/** Check a dataplane. @throws {Error} a defect of the backend, told in one line. */
export function demandDataplane(value: unknown, backend: string): void {
  demand(`open of ${backend}`, value, DATAPLANE);
}

/** Check one family's backend. @throws {Error} a defect of the backend, told in one line. */
export function demandBackend(value: unknown, backend: string): void {
  demand(`family of ${backend}`, value, BACKEND);
  const { reportsDrift, watch } = value as Pick<Backend<unknown, KernelObject, unknown>, "reportsDrift" | "watch">;
  if (reportsDrift === true && watch === undefined)
    throw new Error(`defect of the backend: what family of ${backend} gave back is wrong: reportsDrift is true, and watch is missing`);
}

const ERRORS = rule("a list of ProxyErrors", (value) => Array.isArray(value) && value.every((one) => ProxyError.is(one)));
const REPORT: Readonly<Record<"versions" | "problems" | "warnings", Rule>> = {
  versions: rule("an object of texts", isTextTable),
  problems: ERRORS,
  warnings: optional(ERRORS),
};

/** Check what a probe resolved to. @throws {Error} a defect of the backend, told in one line. */
export function demandReport(value: unknown, backend: string): void {
  demand(`probe of ${backend}`, value, REPORT);
}

const OBSERVED: Readonly<Record<keyof Observed<KernelObject>, Rule>> = {
  objects: rule("a Map of objects by objectId", (value) => value instanceof Map),
  lingering: rule("a list of objects", Array.isArray),
};

/** Check what observe resolved to. @throws {Error} a defect of the backend, told in one line. */
export function demandObserved(value: unknown): void {
  if (value !== undefined) demand("observe", value, OBSERVED);
}

const isLingering = (value: unknown): boolean =>
  isObject(value) && isObject(value["object"]) && Number.isFinite(value["afterMs"]) && Number(value["afterMs"]) >= 0;
const isFailures = (value: unknown): boolean =>
  value instanceof Map && [...(value as Map<unknown, unknown>).values()].every((one) => ProxyError.is(one));

const OUTCOME: Readonly<Record<keyof Outcome<KernelObject>, Rule>> = {
  failed: optional(rule("a Map of ProxyErrors by objectId", isFailures)),
  deferred: optional(rule("a Set of objectIds", (value) => value instanceof Set)),
  lingering: optional(rule("a list of objects, each with afterMs", (value) => Array.isArray(value) && value.every(isLingering))),
};

/**
 * Check what apply resolved to: of the right shape, and about nothing but what it was given.
 * @throws {Error} a defect of the backend, told in one line.
 */
export function demandOutcome(value: unknown, delta: Delta<KernelObject>): void {
  if (!isObject(value))
    throw new Error(`defect of the backend: apply resolved to ${valueText(value)}, not to an Outcome: {} says that all is in force`);
  demand("apply", value, OUTCOME);
  const { failed, deferred, lingering } = value as Outcome<KernelObject>;
  const named = [...(failed?.keys() ?? []), ...(deferred ?? []), ...(lingering ?? []).map(({ object }) => objectId(object))];
  if (named.length === 0) return;
  const objects = [...delta.put.map(({ after }) => after), ...delta.remove, ...delta.lingering.map(({ object }) => object)];
  const known = new Set(objects.map(objectId));
  const unknown = named.find((id) => !known.has(id));
  if (unknown === undefined) return;
  throw new Error(`defect of the backend: apply names ${valueText(unknown)}, which was not in its plan: objects are named by objectId`);
}
