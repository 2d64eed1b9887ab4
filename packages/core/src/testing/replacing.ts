/** Make the same thing with some members replaced: all others are the original's, and are called on it. Getters among `members` stay getters. */
export function replacing<T extends object>(original: T, members: Partial<T>): T {
  // A copy, as a proxy of a frozen object may not give other values.
  const own = Object.entries(Object.getOwnPropertyDescriptors(original)).map(
    ([name, one]) => [name, { ...one, configurable: true }] as const,
  );
  const target = Object.create(Object.getPrototypeOf(original) as object | null, Object.fromEntries(own)) as T;
  return new Proxy(target, {
    get(_, name): unknown {
      const owner = name in members ? members : original;
      const value: unknown = Reflect.get(owner, name, owner);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(owner) : value;
    },
  });
}
