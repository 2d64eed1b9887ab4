/**
 * Call `silent` when nothing has come for so long, unless it is stopped before; returns what stops it.
 *
 * Edges: timers come before sockets in Node's loop. When this process itself was late, what the kernel has kept for it is read first: an answer
 * that lies there is no silence.
 */
export function afterSilence(ms: number, silent: () => void): () => void {
  let look: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => (look = setImmediate(silent)), ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(look);
  };
}
