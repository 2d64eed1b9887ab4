import { ProxyError } from "@turnout/core/backend";
import { SCHEMA_VERSION } from "../hns/documents.ts";
import { isHnsError, HnsError, recordText } from "../hns/error.ts";
import type { HnsHost, HnsKind, OwnKind } from "../hns/host.ts";
import { readIds } from "../hns/replies.ts";
import type { HnsCalls, Pointer, Hresult, Out } from "./calls.ts";
import { guidBytes, NO_GUID } from "./guid.ts";

/** Unspecified failure. */
const E_FAIL = 0x80004005;

/** One call of HNS: it is given where to write what it gives, and why it failed. */
type Asked = (given: Out, record: Out) => Hresult;

/**
 * Make a call that gives a string; resolves to it, or to undefined where it gave none.
 *
 * Edges: its memory is freed whatever becomes of the call.
 * @throws {HnsError} what it failed with.
 */
async function askText(calls: HnsCalls, name: string, asked: Asked): Promise<string | undefined> {
  const given: Out = [null];
  let text: string | undefined;
  try {
    await ask(calls, name, (record) => asked(given, record));
  } finally {
    text = takeText(calls, given);
  }
  return text;
}

/**
 * Make a call that gives a handle; resolves to it. Who gets it closes it.
 * @param close what closes one that came with a failure
 * @throws {HnsError} what it failed with.
 */
async function askHandle(calls: HnsCalls, name: string, asked: Asked, close: (handle: Pointer) => Hresult): Promise<Pointer> {
  const given: Out = [null];
  try {
    await ask(calls, name, (record) => asked(given, record));
  } catch (error) {
    const handle = pointerOf(given);
    if (handle !== undefined) await close(handle);
    throw error;
  }
  const handle = pointerOf(given);
  if (handle === undefined) throw new HnsError(E_FAIL, `${name} gave no handle`);
  return handle;
}

/**
 * Make a call that gives nothing.
 *
 * Edges: a record that says something is a failure, whatever the HRESULT, as in hcsshim's `checkForErrors`.
 * @throws {HnsError} what it failed with.
 */
async function ask(calls: HnsCalls, name: string, asked: (record: Out) => Hresult): Promise<void> {
  const record: Out = [null];
  const hresult = await asked(record);
  const said = takeText(calls, record) ?? "";
  if (hresult >= 0 && said === "") return;
  const text = recordText(said);
  throw new HnsError(hresult < 0 ? hresult : E_FAIL, text === "" ? `${name} gives no reason` : text);
}

function takeText(calls: HnsCalls, given: Out): string | undefined {
  const pointer = pointerOf(given);
  if (pointer === undefined) return undefined;
  try {
    return calls.textAt(pointer);
  } finally {
    calls.free(pointer);
  }
}

function pointerOf([pointer]: Out): Pointer | undefined {
  return pointer === null || pointer === 0n ? undefined : pointer;
}

/** All of a kind, and of each what HNS tells by default. */
const QUERY = JSON.stringify({ SchemaVersion: SCHEMA_VERSION });

const NAMES: Readonly<Record<HnsKind, string>> = { network: "Network", endpoint: "Endpoint", loadBalancer: "LoadBalancer" };

/**
 * The Host Network Service of this machine, by the functions of Windows.
 *
 * Shape: one call after the other, in the order in which they were made. The calls run on another thread, so nobody else waits for them.
 * Edges: whoever aborts doesn't wait for a call that is under way; what was not begun isn't. A list that is aborted ends before its next object.
 * Whoever closes waits for what is under way.
 */
export class WindowsHns implements HnsHost {
  readonly #load: () => HnsCalls;
  #loaded: HnsCalls | undefined;
  /** Settled when all that were made are done. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param load loads the libraries, at the first call; where it throws, the next call tries again */
  constructor(load: () => HnsCalls) {
    this.#load = load;
  }

  version(signal: AbortSignal): Promise<string> {
    return this.#inTurn(signal, async (calls) => {
      const answer = await askText(calls, "HNSCall", (response, _record) => calls.call("GET", "/globals/version", "", response));
      return answer ?? "";
    });
  }

  list(kind: HnsKind, signal: AbortSignal): Promise<readonly string[]> {
    return this.#inTurn(signal, async (calls) => {
      const ofKind = calls.kinds[kind];
      const ids = await askText(calls, `HcnEnumerate${NAMES[kind]}s`, (given, record) => ofKind.enumerate(QUERY, given, record));
      const texts: string[] = [];
      for (const id of readIds(ids)) {
        signal.throwIfAborted();
        const text = await propertiesOf(calls, kind, id);
        if (text !== undefined) texts.push(text);
      }
      return texts;
    });
  }

  createEndpoint(networkId: string, settings: string, signal: AbortSignal): Promise<string> {
    return this.#inTurn(signal, (calls) =>
      withOpen(calls, "network", networkId, (network) =>
        made(calls, "endpoint", (handle, record) => calls.createEndpoint(network, guidBytes(NO_GUID), settings, handle, record)),
      ),
    );
  }

  createLoadBalancer(settings: string, signal: AbortSignal): Promise<string> {
    return this.#inTurn(signal, (calls) =>
      made(calls, "loadBalancer", (handle, record) => calls.createLoadBalancer(guidBytes(NO_GUID), settings, handle, record)),
    );
  }

  modifyLoadBalancer(id: string, settings: string, signal: AbortSignal): Promise<string> {
    return this.#inTurn(signal, (calls) =>
      withOpen(calls, "loadBalancer", id, async (handle) => {
        await ask(calls, "HcnModifyLoadBalancer", (record) => calls.modifyLoadBalancer(handle, settings, record));
        return await query(calls, "loadBalancer", handle);
      }),
    );
  }

  remove(kind: OwnKind, id: string, signal: AbortSignal): Promise<void> {
    return this.#inTurn(signal, async (calls) => {
      const bytes = guidBytes(id);
      await ask(calls, `HcnDelete${NAMES[kind]}`, (record) =>
        kind === "endpoint" ? calls.deleteEndpoint(bytes, record) : calls.deleteLoadBalancer(bytes, record),
      );
    });
  }

  async close(signal: AbortSignal): Promise<void> {
    await untilAborted(this.#last, signal);
  }

  async #inTurn<T>(signal: AbortSignal, work: (calls: HnsCalls) => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      signal.throwIfAborted();
      this.#loaded ??= this.#load();
      return await work(this.#loaded);
    });
    this.#last = Promise.allSettled([turn]);
    return await untilAborted(turn, signal);
  }
}

/** @throws {ProxyError} `canceled` when it is aborted before. */
async function untilAborted<T>(turn: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([turn, aborted.promise]);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ProxyError("canceled", "HNS is no longer waited for", { cause: error });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Undefined: it went since it was enumerated. */
async function propertiesOf(calls: HnsCalls, kind: HnsKind, id: string): Promise<string | undefined> {
  try {
    return await withOpen(calls, kind, id, (handle) => query(calls, kind, handle));
  } catch (error) {
    if (isHnsError(error, "notFound")) return undefined;
    throw error;
  }
}

async function made(calls: HnsCalls, kind: OwnKind, asked: Asked): Promise<string> {
  const ofKind = calls.kinds[kind];
  const handle = await askHandle(calls, `HcnCreate${NAMES[kind]}`, asked, (one) => ofKind.close(one));
  try {
    return await query(calls, kind, handle);
  } finally {
    await ofKind.close(handle);
  }
}

async function withOpen<T>(calls: HnsCalls, kind: HnsKind, id: string, use: (handle: Pointer) => Promise<T>): Promise<T> {
  const ofKind = calls.kinds[kind];
  const bytes = guidBytes(id);
  const open: Asked = (given, record) => ofKind.open(bytes, given, record);
  const handle = await askHandle(calls, `HcnOpen${NAMES[kind]}`, open, (one) => ofKind.close(one));
  try {
    return await use(handle);
  } finally {
    await ofKind.close(handle);
  }
}

async function query(calls: HnsCalls, kind: HnsKind, handle: Pointer): Promise<string> {
  const name = `HcnQuery${NAMES[kind]}Properties`;
  const text = await askText(calls, name, (given, record) => calls.kinds[kind].properties(handle, QUERY, given, record));
  return text ?? "";
}
