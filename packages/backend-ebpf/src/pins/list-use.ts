import { isKeyIn } from "./contents.ts";
import type { MapParts } from "./contents.ts";
import { encodeDestination, encodeId } from "../bytes/layout.ts";
import { listsOf, rangesOf } from "../objects.ts";
import type { EbpfObject, ListObject, RangesObject, ServiceObject } from "../objects.ts";

/** What services name. */
export type NamedObject = ListObject | RangesObject;

/** Tell whether services name objects of this kind. */
export function isNamed(object: EbpfObject): object is NamedObject {
  return object.kind === "list" || object.kind === "ranges";
}

/** Which lists and source ranges services in force name, and which of them are there. */
export class ListUse {
  readonly #named = new Map<string, readonly string[]>();
  readonly #users = new Map<string, number>();
  readonly #present = new Set<string>();

  /** Believe what was observed. */
  adopt(objects: Iterable<EbpfObject>): void {
    this.#named.clear();
    this.#users.clear();
    this.#present.clear();
    for (const object of objects) {
      if (object.kind === "service") this.active(object);
      else if (isNamed(object)) this.#present.add(nameOf(object));
    }
  }

  /** Believe what was observed of these parts of maps alone. */
  adoptPart(objects: Iterable<EbpfObject>, parts: MapParts): void {
    if (parts.has("services")) for (const key of this.#named.keys()) if (isKeyIn(parts, "services", encodeDestination(key))) this.gone(key);
    for (const name of this.#present) {
      const [kind, id = ""] = name.split(" ");
      if (isKeyIn(parts, kind === "list" ? "endpoints" : "source_ranges", encodeId(id))) this.#present.delete(name);
    }
    for (const object of objects) {
      if (object.kind === "service") this.active(object);
      else if (isNamed(object)) this.#present.add(nameOf(object));
    }
  }

  /** A service is in force, in place of what was there under its key. */
  active(service: ServiceObject): void {
    this.gone(service.key);
    const names = namesIn(service);
    this.#named.set(service.key, names);
    for (const name of names) this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
  }

  /** There is no service under a key any more. */
  gone(key: string): void {
    for (const name of this.#named.get(key) ?? []) {
      const users = (this.#users.get(name) ?? 0) - 1;
      if (users > 0) this.#users.set(name, users);
      else this.#users.delete(name);
    }
    this.#named.delete(key);
  }

  /** Whether a service in force names a list, or ranges. */
  isUsed(one: NamedObject): boolean {
    return this.#users.has(nameOf(one));
  }

  /** A list is there, or ranges are, or are not any more. */
  setPresent(one: NamedObject, isThere: boolean): void {
    if (isThere) this.#present.add(nameOf(one));
    else this.#present.delete(nameOf(one));
  }

  /** What a service names and isn't there, `list …` or `ranges …`; undefined: all is. */
  missingOf(service: ServiceObject): string | undefined {
    return namesIn(service).find((name) => !this.#present.has(name));
  }
}

function namesIn(service: ServiceObject): readonly string[] {
  return [
    ...listsOf(service).map((key) => nameOf({ kind: "list", key })),
    ...rangesOf(service).map((key) => nameOf({ kind: "ranges", key })),
  ];
}

function nameOf({ kind, key }: Pick<NamedObject, "kind" | "key">): string {
  return `${kind} ${key}`;
}
