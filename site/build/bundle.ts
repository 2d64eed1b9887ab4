import { constants } from "node:os";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import type { Plugin } from "rolldown";

/** What stands in a browser for what Node has, by what is imported; files of `site/browser`. */
const IN_BROWSER: Readonly<Record<string, string>> = {
  "node:crypto": "crypto.ts",
  "node:fs": "files.ts",
  "node:fs/promises": "files.ts",
  "node:os": "os.ts",
  "node:path": "paths.ts",
  "node:url": "paths.ts",
};

/** Files below `packages` that make a world of the host: the only ways to it. */
const WORLDS: ReadonlySet<string> = new Set([
  "host/src/world.ts",
  "backend-ipvs/src/world.ts",
  "client/src/sockets/node-sockets.ts",
  "backend-winkernel/src/world.ts",
]);

/** Make one script of a program for browsers. @throws {Error} naming what of Node would be left in it. */
export async function bundleForBrowsers(root: string, program: string): Promise<string> {
  const bundle = await rolldown({
    input: program,
    platform: "browser",
    // Stand-ins have what is used: the rest is imported by files of which nothing is left.
    shimMissingExports: true,
    resolve: { conditionNames: ["@turnout/source", "import", "browser"] },
    transform: {
      inject: Object.fromEntries(["Buffer", "process", "setTimeout"].map((name) => [name, [join(root, "site/browser/globals.ts"), name]])),
    },
    plugins: [withoutHost(root), withData(root), withoutPlaces(root)],
    logLevel: "silent",
  });
  // A classic script: browsers load no modules from file://.
  const { output } = await bundle.generate({ format: "iife", minify: true, comments: false });
  await bundle.close();
  const [{ code, imports }] = output;
  if (imports.length > 0) throw new Error(`the page can't have ${imports.join(", ")}: give it a stand-in in site/build/bundle.ts`);
  // The script may stand in a page.
  return code.replaceAll("</script", "<\\/script");
}

/** Put stand-ins in the place of what there is not in a browser. */
function withoutHost(root: string): Plugin {
  const standIn = (file: string): string => join(root, "site/browser", file);
  return {
    name: "without-host",
    async resolveId(id, importer, options) {
      const known = IN_BROWSER[id];
      if (known !== undefined) return standIn(known);
      if (id.startsWith("node:") || id === "koffi") return { id, external: true };
      const found = await this.resolve(id, importer, { ...options, skipSelf: true });
      if (found !== null && WORLDS.has(relative(join(root, "packages"), found.id))) return standIn("no-world.ts");
      return found;
    },
  };
}

/** What is read while the bundle is made. */
function withData(root: string): Plugin {
  const data = `export const ERRNO = ${JSON.stringify(constants.errno)};`;
  const place = join(root, "site/browser/data.ts");
  return { name: "with-data", load: (id) => (id === place ? { code: data, moduleType: "js" } : undefined) };
}

/** Where a module lies is asked for by what reads files beside it: in a bundle it lies nowhere. */
function withoutPlaces(root: string): Plugin {
  return {
    name: "without-places",
    transform(code, id) {
      if (!code.includes("import.meta.url")) return undefined;
      return code.replaceAll("import.meta.url", JSON.stringify(`file:///${relative(root, id)}`));
    },
  };
}
