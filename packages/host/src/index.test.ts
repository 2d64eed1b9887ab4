import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";

/** Files that a door loads at run time, relative to `src`. */
function loadedBy(entryPoint: string): readonly string[] {
  const loaded = new Set([entryPoint]);
  // A set hands out what is added to it meanwhile.
  for (const file of loaded) {
    const text = readFileSync(new URL(file, import.meta.url), "utf8");
    for (const [, specifier = ""] of text.matchAll(/^(?:im|ex)port (?!type )[^;]*?from "(\.[^"]+)";/gm))
      loaded.add(posix.join(posix.dirname(file), specifier));
  }
  return [...loaded];
}

it.each([
  ["index.ts", /^(?:iptables|nft|testing)\//],
  ["iptables/index.ts", /^(?:nft|netlink|testing)\//],
  ["nft/index.ts", /^(?:iptables|netlink|testing)\//],
  ["testing/index.ts", /^(?:testing\/)?(?:iptables|nft)\//],
])("%s loads nothing of tools that its importer may do without", (entryPoint, others) => {
  const loaded = loadedBy(entryPoint);
  expect(loaded.length).toBeGreaterThan(3);
  expect(loaded.filter((file) => others.test(file))).toEqual([]);
});
