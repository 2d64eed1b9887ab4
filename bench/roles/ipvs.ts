import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inFolder } from "../folder.ts";
import { runRole } from "../role-process.ts";
import { POD_CIDR } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { backendRun, output } from "./backend-run.ts";
import type { BackendRun, FirstSync } from "./backend-run.ts";

/** What to measure the ipvs backend with. */
export interface IpvsParameters {
  readonly shape: Shape;
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface IpvsRun extends BackendRun {
  /** The same sets and servers given to the tools alone, in an empty namespace. */
  readonly reload: IpvsReload;
  /** A restart that finds everything as it should be. */
  readonly adoption: FirstSync;
}

/** A load by `ipset restore` and `ipvsadm -R`. */
export interface IpvsReload {
  readonly ms: number;
}

/** What the tools print, by the name of the file that it goes to. */
const SAVED: readonly (readonly [name: string, file: string, args: readonly string[]])[] = [
  ["sets", "ipset", ["save"]],
  ["servers", "ipvsadm", ["-Sn"]],
];

/** Load everything with our backend here, and with the tools alone elsewhere; then change endpoints; then start again. In a VM. */
export async function ipvsRun({ shape, changes }: IpvsParameters): Promise<IpvsRun> {
  return await inFolder(async (directory) => {
    await routeToPods();
    // In the VM the other variant can't do anything.
    const parameters = { backend: "ipvs", shape, raw: { variant: "legacy" } } as const;
    let reload: IpvsReload = { ms: NaN };
    const run = await backendRun({ ...parameters, changes }, async () => {
      for (const [name, file, args] of SAVED) await writeFile(join(directory, name), await output(file, args));
      reload = await runRole<IpvsReload>("ipvs-reload", directory);
    });
    await runRole("backend-restore", parameters, { namespace: "same" });
    return { ...run, reload, adoption: await runRole<FirstSync>("backend-adopt", parameters, { namespace: "same" }) };
  });
}

/** Give what was saved in a directory to the tools, in this namespace. */
export async function ipvsReload(directory: string): Promise<IpvsReload> {
  await routeToPods();
  const startMs = performance.now();
  await output("sh", ["-c", `ipset restore <${join(directory, "sets")} && ipvsadm -R <${join(directory, "servers")}`]);
  const ms = performance.now() - startMs;
  // ipvsadm goes on where it is refused something, and ends well. The kernel lists what came last first.
  const sorted = (text: string): string => text.split("\n").toSorted().join("\n");
  if (sorted(await output("ipvsadm", ["-Sn"])) !== sorted(await readFile(join(directory, "servers"), "utf8")))
    throw new Error("ipvsadm -R did not load what ipvsadm -S had saved");
  return { ms };
}

/** IPVS refuses real servers that it knows no way to, and knows none to anybody before loopback is up. */
async function routeToPods(): Promise<void> {
  await output("sh", [
    "-c",
    `ip link set lo up && ip link add pods type dummy && ip link set pods up && ip route add ${POD_CIDR} dev pods`,
  ]);
}
