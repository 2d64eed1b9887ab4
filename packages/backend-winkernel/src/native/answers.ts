import { HnsError, recordText } from "../hns/error.ts";
import type { HnsCalls, Hresult, Out, Pointer } from "./calls.ts";

/** Unspecified failure. */
const E_FAIL = 0x80004005;

/** One call of HNS: it is given where to write what it gives, and why it failed. */
export type Asked = (given: Out, record: Out) => Hresult;

/**
 * Make a call that gives a string; resolves to it, or to undefined where it gave none.
 *
 * Edges: its memory is freed whatever becomes of the call.
 * @throws {HnsError} what it failed with.
 */
export async function askText(calls: HnsCalls, name: string, asked: Asked): Promise<string | undefined> {
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
export async function askHandle(calls: HnsCalls, name: string, asked: Asked, close: (handle: Pointer) => Hresult): Promise<Pointer> {
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
export async function ask(calls: HnsCalls, name: string, asked: (record: Out) => Hresult): Promise<void> {
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
