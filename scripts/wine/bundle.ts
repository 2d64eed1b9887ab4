import { rolldown } from "rolldown";

/**
 * Bundle programs, by their names, and all that they import into a folder, `name.mjs` each. Packages with a compiled part stay outside, as they find it beside
 * themselves: koffi, and netlink, which has none for Windows.
 */
export async function bundleInto(folder: string, programs: Readonly<Record<string, string>>, hasSourceMaps: boolean): Promise<void> {
  const bundle = await rolldown({
    input: programs,
    platform: "node",
    external: ["koffi", "netlink"],
    resolve: { conditionNames: ["@turnout/source", "import", "node"] },
    logLevel: "silent",
  });
  await bundle.write({ dir: folder, format: "esm", entryFileNames: "[name].mjs", sourcemap: hasSourceMaps });
  await bundle.close();
}
