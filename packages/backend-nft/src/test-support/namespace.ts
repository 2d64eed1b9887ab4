import { spawnSync } from "node:child_process";
import type { Exec } from "@turnout/core";
import { createExec } from "@turnout/host";
import type { Netlink } from "@turnout/host";
import { nftTableIn } from "@turnout/host/testing";

/** A network namespace that a test made for itself. */
export interface TestNamespace {
  /** The real exec, with every program started inside. */
  readonly exec: Exec;
  /** The kernel's tables in it. */
  readonly tables: Pick<Netlink, "nftTable" | "prepareNftWrite" | "deleteNftTable">;
  /** Delete it, with everything that is in it. */
  remove(): void;
}

/** Make a network namespace; `name` is the test file's own. @throws {Error} with the words of `ip` when that is refused. */
export function createTestNamespace(name: string): TestNamespace {
  const namespace = `${name}-${process.pid}`;
  ip("netns", "add", namespace);
  const exec = createExec();
  const inside = (file: string, args: readonly string[]): readonly string[] => ["netns", "exec", namespace, file, ...args];
  return {
    exec: {
      run: (file, args, options) => exec.run("ip", inside(file, args), options),
      open: (file, args) => exec.open("ip", inside(file, args)),
    },
    tables: nftTableIn(`/run/netns/${namespace}`),
    remove: () => ip("netns", "del", namespace),
  };
}

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}
