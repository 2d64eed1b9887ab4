/** Make the same thing with some members replaced: all others are the original's, and are called on it. Getters among `members` stay getters. */
export function replacing<T extends object>(original: T, members: Partial<T>): T {
  return new Proxy(original, {
    get(_, name): unknown {
      const owner = name in members ? members : original;
      const value: unknown = Reflect.get(owner, name, owner);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(owner) : value;
    },
  });
}
