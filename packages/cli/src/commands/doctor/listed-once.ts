import type { Exec, ExecResult } from "@turnout/core";

/** What lists rules of iptables, or says which iptables it is. */
const LISTING = /^ip6?tables(?:-nft|-legacy)?(?:-save)?$/;

/**
 * Run each listing of iptables once, and give what it printed to all that ask for it: several backends look at the same tables, and with thousands of
 * Services one listing takes seconds. For what only reads.
 *
 * Edges: what failed to run is run again.
 */
export function listedOnce(exec: Exec): Exec {
  const done = new Map<string, Promise<ExecResult>>();
  return {
    run(file, args, options) {
      const isListing = LISTING.test(file) && (file.endsWith("-save") || args.includes("-S") || args[0] === "-V");
      if (!isListing) return exec.run(file, args, options);
      const key = JSON.stringify([file, ...args]);
      const known = done.get(key) ?? exec.run(file, args, options);
      done.set(key, known);
      known.catch(() => done.delete(key));
      return known;
    },
    open: (file, args) => exec.open(file, args),
  };
}
