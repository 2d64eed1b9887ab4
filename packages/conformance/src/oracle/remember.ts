import type { IPFamily } from "@turnout/core";

/** Read things that never change only once: what was read of one in a family is kept for as long as the thing itself is. */
export function remember<K extends object, V>(read: (thing: K, family: IPFamily) => V): (thing: K, family: IPFamily) => V {
  const known = { IPv4: new WeakMap<K, { readonly value: V }>(), IPv6: new WeakMap<K, { readonly value: V }>() };
  return (thing, family) => {
    const kept = known[family].get(thing) ?? { value: read(thing, family) };
    known[family].set(thing, kept);
    return kept.value;
  };
}
