/** Levels of JSON; Kubernetes' objects have a dozen. */
const LEVELS_MAX = 64;
const TOO_DEEP = "nested too deeply";

/**
 * Parse JSON that others wrote. What is nested deeper than 64 levels is replaced by a text, so no function that calls itself for each level, such as
 * `JSON.stringify`, runs out of stack.
 *
 * @throws {SyntaxError} for what is not JSON.
 */
export function parseJSON(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isDeep(text)) cut(value);
  return value;
}

/** Looks at the text, which is much faster than to look at what it came to. It is JSON. */
function isDeep(text: string): boolean {
  let level = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      for (at++; text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++;
    } else if (code === 0x5b || code === 0x7b) {
      if (++level > LEVELS_MAX) return true;
    } else if (code === 0x5d || code === 0x7d) level--;
  }
  return false;
}

function cut(root: unknown): void {
  let holders = [root].filter(isHolder);
  for (let level = 1; holders.length > 0; level++) {
    const inside: object[] = [];
    for (const holder of holders) {
      for (const [key, value] of Object.entries(holder)) {
        if (!isHolder(value)) continue;
        if (level < LEVELS_MAX) inside.push(value);
        // Not an assignment, which would leave a field `__proto__` as it is.
        else Object.defineProperty(holder, key, { value: TOO_DEEP, enumerable: true, configurable: true, writable: true });
      }
    }
    holders = inside;
  }
}

function isHolder(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
