import { objectId, ProxyError } from "@turnout/core/backend";
import type { Clock, IPFamily, Lingering, Outcome, Plan, Turn } from "@turnout/core/backend";
import { elementsOf, isInMap, mapOf } from "./bytes/elements.ts";
import type { Element, WrittenMap } from "./bytes/elements.ts";
import { isNamed } from "./pins/list-use.ts";
import type { ListUse } from "./pins/list-use.ts";
import { deleteElements, writeParts } from "./pins/map-writes.ts";
import type { Part, WritableMap } from "./pins/map-writes.ts";
import type { AttachedObject, DeviceObject, EbpfObject, MapObject } from "./objects.ts";
import { optionFor } from "./options.ts";
import { RETIRED_MS } from "./plan.ts";
import type { Step } from "./plan.ts";

/** How many elements are written or deleted before the time is looked at. */
const CHUNK = 4096;

/** What plans are carried out with. */
export interface ApplierTools {
  readonly clock: Pick<Clock, "nowMs">;
  readonly lists: ListUse;
  /** The pinned maps; they are made where there are none. @throws {ProxyError} what loading failed with. */
  maps(): Promise<ReadonlyMap<string, WritableMap>>;
  /** Bring programs to their hooks and devices, each in one step where another is there; gives what could not be. @throws {ProxyError} `canceled`. */
  attach(objects: readonly AttachedObject[], signal: AbortSignal): Promise<ReadonlyMap<AttachedObject, ProxyError>>;
  /** Take programs from devices; gives what could not be. */
  detach(devices: readonly DeviceObject[]): ReadonlyMap<AttachedObject, ProxyError>;
  /** Make the table of nft anew, or remove it. @throws {ProxyError} */
  setTable(isWanted: boolean, signal: AbortSignal): Promise<void>;
  /** Say that a family's services have been in the maps. @throws {ProxyError} */
  mark(family: IPFamily): void;
  /** Say that a family is served, once all is there that it takes. @throws {ProxyError} what is missing. */
  serve(family: IPFamily, signal: AbortSignal): Promise<void>;
  /** Remove a folder of pins; false: a program at its hook still needs it. @throws {ProxyError} */
  removeFolder(path: string): boolean;
}

/** Steps that are carried out together: one verb, and of maps one map. */
interface Chunk {
  readonly steps: readonly Step[];
  /** Undefined: not of a map. */
  readonly map: WrittenMap | undefined;
}

/** What became of single objects. */
class Results {
  readonly failed = new Map<string, ProxyError>();
  readonly deferred = new Set<string>();
  readonly lingering: Lingering<EbpfObject>[] = [];

  outcome(): Outcome<EbpfObject> {
    return {
      ...(this.failed.size === 0 ? {} : { failed: this.failed }),
      ...(this.deferred.size === 0 ? {} : { deferred: this.deferred }),
      ...(this.lingering.length === 0 ? {} : { lingering: this.lingering }),
    };
  }
}

/**
 * Carries plans out, many elements at a time.
 *
 * Edges: an object that its map has no room for fails by itself, and leaves nothing of itself there; a service whose list or source ranges failed fails
 * too, and stays as it was. A list that a service in force names is not deleted, and neither are ranges: they linger on.
 */
export class Applier {
  readonly #tools: ApplierTools;

  constructor(tools: ApplierTools) {
    this.#tools = tools;
  }

  /** @throws {ProxyError} what no object is to blame for; earlier steps are in force. */
  async apply({ steps }: Plan<Step>, signal: AbortSignal, turn?: Turn): Promise<Outcome<EbpfObject>> {
    const results = new Results();
    if (steps.length === 0) return results.outcome();
    const maps = await this.#tools.maps();
    const chunks = chunksOf(steps);
    for (const [index, chunk] of chunks.entries()) {
      if (signal.aborted) throw new ProxyError("canceled", "a plan was stopped", { cause: signal.reason });
      // Whether a family is served is said in the plan that failed to bring it there.
      const isLast = chunk.steps[0]?.object.kind === "serving";
      if (index > 0 && !isLast && turn !== undefined && this.#tools.clock.nowMs() >= turn.untilMs) {
        for (const { object } of chunks.slice(index).flatMap((late) => late.steps)) results.deferred.add(objectId(object));
        break;
      }
      await this.#carryOut(chunk, maps, results, signal);
    }
    return results.outcome();
  }

  async #carryOut(
    { steps, map: name }: Chunk,
    maps: ReadonlyMap<string, WritableMap>,
    results: Results,
    signal: AbortSignal,
  ): Promise<void> {
    if (name === undefined) {
      for (const step of steps) await this.#carryOutOne(step, results, signal);
      const attached = steps.flatMap(({ object }) => (object.kind === "link" || object.kind === "device" ? [object] : []));
      const devices = attached.filter((object) => object.kind === "device");
      const isWritten = steps[0]?.verb === "write";
      const failed =
        isWritten && attached.length > 0 ? await this.#tools.attach(attached, signal) : this.#tools.detach(isWritten ? [] : devices);
      for (const [object, error] of failed) results.failed.set(objectId(object), error);
      return;
    }
    const map = maps.get(name);
    if (map === undefined) throw new ProxyError("not_found", "a BPF map is missing", { object: name });
    if (steps[0]?.verb === "write") return await this.#write(map, name, steps, results);
    const gone = steps.flatMap(({ object }) => {
      if (!isNamed(object) || !this.#tools.lists.isUsed(object)) return [object as MapObject];
      results.lingering.push({ object, afterMs: RETIRED_MS });
      return [];
    });
    await deleteElements(map, gone.flatMap(elementsOf));
    for (const object of gone) {
      if (object.kind === "service") this.#tools.lists.gone(object.key);
      else if (isNamed(object)) this.#tools.lists.setPresent(object, false);
    }
  }

  async #write(map: WritableMap, name: WrittenMap, steps: readonly Step[], results: Results): Promise<void> {
    const { lists } = this.#tools;
    const parts = steps.flatMap((step): readonly Part<MapObject>[] => {
      const object = step.object as MapObject;
      const missing = object.kind === "service" ? lists.missingOf(object) : undefined;
      if (missing === undefined) return [{ of: object, elements: elementsOf(object) }];
      const what = "a service's endpoints or source ranges could not be written";
      results.failed.set(objectId(object), new ProxyError("limit_reached", what, { object: missing }));
      return [];
    });
    const refused = await writeParts(map, parts, (object) => isNamed(object) && lists.isUsed(object));
    for (const [object, error] of refused) results.failed.set(objectId(object), withOption(error, name));
    await deleteElements(
      map,
      steps.flatMap((step): readonly Element[] => (step.verb === "write" && step.surplus !== undefined ? elementsOf(step.surplus) : [])),
    );
    for (const { of: object } of parts) {
      if (isNamed(object)) lists.setPresent(object, !refused.has(object));
      if (object.kind === "service" && !refused.has(object)) lists.active(object);
    }
  }

  async #carryOutOne({ verb, object }: Step, results: Results, signal: AbortSignal): Promise<void> {
    if (object.kind === "table") {
      try {
        await this.#tools.setTable(verb === "write", signal);
      } catch (error) {
        if (!ProxyError.is(error) || error.code === "canceled") throw error;
        results.failed.set(objectId(object), error);
      }
    } else if (object.kind === "filled") this.#tools.mark(object.key);
    else if (object.kind === "serving") await this.#tools.serve(object.key, signal);
    else if (verb === "retire") results.lingering.push({ object, afterMs: RETIRED_MS });
    else if (object.kind === "folder" && !this.#tools.removeFolder(object.key)) results.lingering.push({ object, afterMs: RETIRED_MS });
  }
}

/** Cut a plan into what is carried out at once. Pure. */
function chunksOf(steps: readonly Step[]): readonly Chunk[] {
  const chunks: { readonly steps: Step[]; readonly map: WrittenMap | undefined }[] = [];
  let elements = 0;
  for (const step of steps) {
    const map = mapOfStep(step);
    const last = chunks.at(-1);
    const first = last?.steps[0];
    const isSame = last?.map === map && first?.verb === step.verb && partOf(first) === partOf(step);
    if (last !== undefined && isSame && elements < CHUNK) last.steps.push(step);
    else {
      chunks.push({ steps: [step], map });
      elements = 0;
    }
    elements += isNamed(step.object) ? step.object.value.length : 1;
  }
  return chunks;
}

/** What isn't in a map is carried out together, but for what has a place of its own in the order. */
function partOf({ object: { kind } }: Step): string {
  return kind === "table" || kind === "serving" ? kind : "";
}

function mapOfStep({ verb, object }: Step): WrittenMap | undefined {
  return verb === "retire" || !isInMap(object) ? undefined : mapOf(object);
}

/** What to do about a full map. */
function withOption(error: ProxyError, map: WrittenMap): ProxyError {
  const option = optionFor(map);
  if (error.code !== "limit_reached") return error;
  const { code, what, object, cause } = error;
  const hint = option === undefined ? "no option makes it larger" : `raise the option ${option}`;
  return new ProxyError(code, what, { ...(object === undefined ? {} : { object }), hint, cause });
}
