import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeCgroupTrees } from "@turnout/lab";

const ROOT = "/sys/fs/cgroup";

/** A cgroup (version 1) of one hierarchy. */
export interface V1Cgroup {
  /** Its controllers as a mount's options have them, or `systemd`. */
  readonly controller: string;
  readonly folder: string;
}

/** The hierarchies that this process is in, from the text of /proc/self/cgroup; that of version 2 is none of them. Pure. */
export function hierarchiesOf(text: string): readonly { readonly controller: string; readonly path: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, controller = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    return controller === "" ? [] : [{ controller: controller.replace(/^name=/, ""), path }];
  });
}

function ownCgroups(): readonly V1Cgroup[] {
  const found = hierarchiesOf(readFileSync("/proc/self/cgroup", "utf8"));
  return found.map(({ controller, path }) => ({ controller, folder: join(ROOT, controller, path) }));
}

/**
 * Make a cgroup of this name in each hierarchy, below that of this process, whose limits go on to hold.
 * @throws {Error} on a machine without cgroup version 1.
 */
export function createV1Cgroups(name: string): readonly V1Cgroup[] {
  const own = ownCgroups();
  if (own.length === 0)
    throw new Error(
      "this machine has cgroup v2 alone, and nodes in namespaces were made with v1 only: use npm run e2e:kind, which needs Docker",
    );
  return own.map(({ controller, folder: parent }) => {
    const folder = join(parent, name);
    mkdirSync(folder);
    if (controller.split(",").includes("cpuset")) {
      // Empty at first, and then nothing may enter.
      for (const file of ["cpuset.cpus", "cpuset.mems"]) writeFileSync(join(folder, file), readFileSync(join(parent, file)));
      writeFileSync(join(folder, "cgroup.clone_children"), "1");
    }
    return { controller, folder };
  });
}

/** The names of cgroups below that of this process. */
export function v1CgroupNames(): readonly string[] {
  const names = ownCgroups().flatMap(({ folder }) =>
    existsSync(folder) ? readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()) : [],
  );
  return [...new Set(names.map(({ name }) => name))];
}

/** Remove cgroups of these names with all below them, as {@link removeCgroupTrees}. Their processes have been killed. */
export function removeV1Cgroups(names: readonly string[]): void {
  removeCgroupTrees(ownCgroups().flatMap(({ folder }) => names.map((name) => join(folder, name))));
}
