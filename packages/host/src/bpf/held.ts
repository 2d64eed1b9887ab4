const held = new Set<unknown>();

/** Keep buffers from being collected while C knows their addresses: until `call` is through, or what it promises. */
export function whileHeld<T>(buffers: readonly Uint8Array[], call: () => T): T {
  held.add(buffers);
  const release = (): void => void held.delete(buffers);
  let result: T;
  try {
    result = call();
  } catch (error) {
    release();
    throw error;
  }
  if (result instanceof Promise) void result.then(release, release);
  else release();
  return result;
}
