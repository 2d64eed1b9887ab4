import type { HostEvent } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { withBackend } from "../../runner/changed-subject.ts";
import type { AnyBackend } from "../../runner/changed-subject.ts";
import { referenceBackend } from "../../reference/reference-backend.ts";
import { createReferenceHost } from "../../reference/reference-host.ts";
import { checkBackend } from "../check.ts";

/** What is found of reference with another watch, before any scenario: of IPv4, as what was looked at and what came. */
async function found(change: (inner: AnyBackend) => Partial<AnyBackend>): Promise<readonly string[]> {
  const { module, createFakeHost } = withBackend(change)({ module: referenceBackend, createFakeHost: createReferenceHost });
  const { findings } = await checkBackend(module, createFakeHost, []);
  return findings.filter(({ family }) => family === "IPv4").map(({ kind, what, got }) => `${kind} ${what}: ${got}`);
}

const BEFORE = "contract watch() of a host whose addresses have changed since the probe";
const WHILE = "contract watch() when the host's addresses change";

describe("what the kit says of a backend", () => {
  it("that tells the facts at once and whenever they change: nothing", async () => {
    expect(await found(() => ({}))).toEqual([]);
  });

  it("whose watch begins with nothing", async () => {
    async function* late(inner: AnyBackend, signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
      let isFirst = true;
      for await (const event of inner.watch?.(signal) ?? []) {
        if (!isFirst) yield event;
        isFirst = false;
      }
    }
    expect(await found((inner) => ({ watch: (signal) => late(inner, signal) }))).toEqual([`${BEFORE}: none`]);
  });

  it("whose watch tells the facts as the probe found them", async () => {
    const probed = { addresses: { IPv4: ["172.18.0.1"], IPv6: [] } };
    async function* stale(inner: AnyBackend, signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
      for await (const event of inner.watch?.(signal) ?? []) yield event.kind === "facts" ? { ...event, facts: probed } : event;
    }
    expect(await found((inner) => ({ watch: (signal) => stale(inner, signal) }))).toEqual([`${BEFORE}: others`, `${WHILE}: others`]);
  });

  it("whose watch tells the facts at its beginning alone", async () => {
    async function* once(inner: AnyBackend, signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
      let reported = 0;
      for await (const event of inner.watch?.(signal) ?? []) if (reported++ === 0) yield event;
    }
    expect(await found((inner) => ({ watch: (signal) => once(inner, signal) }))).toEqual([`${WHILE}: none`]);
  });

  it("that has facts and no watch", async () => {
    const { module, createFakeHost } = withBackend(() => ({}))({ module: referenceBackend, createFakeHost: createReferenceHost });
    const unread: typeof module = {
      ...module,
      async open(options, world, signal) {
        const dataplane = await module.open(options, world, signal);
        const family = (one: "IPv4" | "IPv6"): AnyBackend => {
          const { watch: _, ...backend } = dataplane.family(one);
          return backend;
        };
        return { family, close: (stop) => dataplane.close(stop) };
      },
    };
    const { findings } = await checkBackend(unread, createFakeHost, []);
    expect(findings.map(({ family, what, got }) => `${family} ${what}: ${got}`)).toEqual([
      "IPv4 facts that change with the host's addresses: there is none",
      "IPv6 facts that change with the host's addresses: there is none",
    ]);
  });
});
