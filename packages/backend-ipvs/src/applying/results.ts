import { objectId } from "@turnout/core/backend";
import type { Lingering, Outcome, ProxyError } from "@turnout/core/backend";
import type { IpvsObject } from "../objects.ts";

/** What became of single objects in one plan. */
export class Results {
  /** Refusals by the object's id. */
  readonly failed: Map<string, ProxyError> = new Map<string, ProxyError>();
  /** What goes later. */
  readonly lingering: Lingering<IpvsObject>[] = [];
  /** Virtual servers that aren't there because the kernel refused them, as members of sets. */
  readonly absent: Set<string> = new Set();

  /** Note that an object was refused; undefined: it wasn't. */
  note(object: IpvsObject, error: ProxyError | undefined): void {
    if (error !== undefined) this.failed.set(objectId(object), error);
  }

  /** What the core is told. */
  outcome(): Outcome<IpvsObject> {
    return {
      ...(this.failed.size === 0 ? {} : { failed: this.failed }),
      ...(this.lingering.length === 0 ? {} : { lingering: this.lingering }),
    };
  }
}
