import { rolldown } from "rolldown";

/**
 * Bundle programs, by their names, and all that they import into a folder, `name.mjs` each. koffi has a compiled part, which it finds beside
 * itself: it stays outside.
 */
export async function bundleInto(folder: string, programs: Readonly<Record<string, string>>, hasSourceMaps: boolean): Promise<void> {
  const bundle = await rolldown({
    input: programs,
    platform: "node",
    external: ["koffi"],
    resolve: { conditionNames: ["@turnout/source", "import", "node"] },
    logLevel: "silent",
  });
  await bundle.write({ dir: folder, format: "esm", entryFileNames: "[name].mjs", sourcemap: hasSourceMaps });
  await bundle.close();
}
