import type { ServerResponse } from "node:http";
import type { ApiObject } from "./api-object.ts";
import type { Faults } from "./faults.ts";
import { versioned, type ObjectStore, type StoredEvent } from "./object-store.ts";
import { apiVersionOf, type Resource, type ServedKind } from "./resources.ts";
import type { Matcher } from "./selectors.ts";
import type { StatusBody } from "./status.ts";

/** What a client asked to watch. */
export interface WatchSpec {
  readonly resource: Resource;
  readonly matches: Matcher;
  readonly wantsBookmarks: boolean;
}

/** One line of a watch. */
export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: unknown;
}

/**
 * Tell what a write looks like through a selector; undefined when it is not seen.
 *
 * Edges: an object that enters is ADDED, one that leaves is DELETED in its last visible form under the new
 * resourceVersion.
 */
export function watchEventFor(event: StoredEvent, matches: Matcher): WatchEvent | undefined {
  const { before, after } = event;
  const wasSeen = before !== undefined && matches(before);
  if (after !== undefined && matches(after)) return { type: wasSeen ? "MODIFIED" : "ADDED", object: after };
  return wasSeen ? { type: "DELETED", object: versioned(before, String(event.revision)) } : undefined;
}

/** An open watch. */
export class WatchStream {
  readonly #response: ServerResponse;
  readonly #spec: WatchSpec;
  readonly #faults: Faults;
  #isSilent = false;

  constructor(response: ServerResponse, spec: WatchSpec, faults: Faults) {
    this.#response = response;
    this.#spec = spec;
    this.#faults = faults;
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
  }

  /** The kind that is watched. */
  get kind(): ServedKind {
    return this.#spec.resource.kind;
  }

  /** Send all objects as they are, and for watch-list the bookmark that says they are complete. */
  sendInitial(store: ObjectStore, withEnd: boolean): void {
    const objects: readonly ApiObject[] = store.list(this.kind).filter(this.#spec.matches);
    for (const object of objects) this.#send({ type: "ADDED", object });
    if (withEnd) this.#sendBookmark(store.revision, { "k8s.io/initial-events-end": "true" });
  }

  /** Pass a write on, if the watch sees it. */
  deliver(event: StoredEvent): void {
    if (event.kind !== this.kind) return;
    const seen = watchEventFor(event, this.#spec.matches);
    if (seen === undefined) return;
    if (this.#faults.strike("truncateEvents", "watch", this.kind) !== undefined) {
      const line = JSON.stringify(seen);
      if (!this.#isSilent) this.#response.write(line.slice(0, line.length / 2), () => this.#response.destroy());
      this.#isSilent = true;
      return;
    }
    this.#send(seen);
    if (this.#faults.strike("duplicateEvents", "watch", this.kind) !== undefined) this.#send(seen);
  }

  /** Tell the client how far it is. */
  bookmark(revision: number): void {
    if (this.#spec.wantsBookmarks) this.#sendBookmark(revision, undefined);
  }

  /** Send an ERROR event and end. */
  fail(status: StatusBody): void {
    this.#send({ type: "ERROR", object: status });
    this.end();
  }

  /** Never send anything again, and keep the connection: a server that hangs. */
  silence(): void {
    this.#isSilent = true;
  }

  /** End the response properly. */
  end(): void {
    this.#response.end();
  }

  /** Cut the connection. */
  drop(): void {
    this.#response.destroy();
  }

  #sendBookmark(revision: number, annotations: Readonly<Record<string, string>> | undefined): void {
    const { kind } = this;
    const metadata = { resourceVersion: String(revision), creationTimestamp: null, ...(annotations && { annotations }) };
    this.#send({ type: "BOOKMARK", object: { kind, apiVersion: apiVersionOf(this.#spec.resource), metadata } });
  }

  #send(event: WatchEvent): void {
    if (!this.#isSilent) this.#response.write(`${JSON.stringify(event)}\n`);
  }
}
