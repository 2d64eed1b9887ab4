import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * Bundle a program and all that it imports into a folder; gives the file to run. Packages with a compiled part stay outside, as they find it beside
 * themselves: koffi, and netlink, which has none for Windows.
 */
export async function bundleInto(script: string, folder: string, hasSourceMaps: boolean): Promise<string> {
  const bundle = await rolldown({
    input: script,
    platform: "node",
    external: ["koffi", "netlink"],
    resolve: { conditionNames: ["@turnout/source", "import", "node"] },
    logLevel: "silent",
  });
  await bundle.write({ dir: folder, format: "esm", entryFileNames: "main.mjs", sourcemap: hasSourceMaps });
  await bundle.close();
  return join(folder, "main.mjs");
}
