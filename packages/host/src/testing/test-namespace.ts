import { spawnSync } from "node:child_process";
import type { Exec, World } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { createExec } from "../exec/exec.ts";
import type { Netlink } from "../netlink/netlink.ts";
import { createFakeLog } from "./fake-log.ts";
import { createFakeNetlink } from "./fake-netlink.ts";
import { nftTableIn } from "./nft-table-in.ts";

/** A network namespace that a test made for itself. */
export interface TestNamespace {
  readonly name: string;
  /** The real exec, with every program started inside. */
  readonly exec: Exec;
  /** The kernel's tables in it. */
  readonly tables: Pick<Netlink, "nftTable" | "prepareNftWrite" | "deleteNftTable">;
  /** A world of it: its programs and tables, a fake netlink besides, and a log that nobody reads. */
  readonly world: World & { readonly netlink: Netlink };
  /** Run a program inside to its end; resolves to what it printed. @throws {Error} with what it complained about. */
  run(file: string, args: readonly string[], input?: string): Promise<string>;
  /** Delete it, with everything that is in it. */
  remove(): void;
}

/** Make a network namespace; `name` is the test file's own. @throws {Error} with the words of `ip` when that is refused. */
export function createTestNamespace(name: string): TestNamespace {
  const namespace = `${name}-${process.pid}`;
  ip("netns", "add", namespace);
  const outside = createExec();
  const inside = (file: string, args: readonly string[]): readonly string[] => ["netns", "exec", namespace, file, ...args];
  const exec: Exec = {
    run: (file, args, options) => outside.run("ip", inside(file, args), options),
    open: (file, args) => outside.open("ip", inside(file, args)),
  };
  const tables = nftTableIn(`/run/netns/${namespace}`);
  return {
    name: namespace,
    exec,
    tables,
    world: { exec, clock: systemClock(), netlink: { ...createFakeNetlink(), ...tables }, log: createFakeLog() },
    async run(file, args, input) {
      const { code, stdout, stderr } = await exec.run(file, args, input === undefined ? {} : { input });
      if (code !== 0) throw new Error(`${file} ${args.join(" ")}: ${stderr}`);
      return stdout;
    },
    remove: () => ip("netns", "del", namespace),
  };
}

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}
