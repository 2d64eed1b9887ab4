import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listNetworkNamespaces } from "./namespaces.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "turnout-namespaces-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** A process in a namespace, which is a file here. */
function processIn(pid: string, namespace: string): void {
  mkdirSync(join(root, "proc", pid, "ns"), { recursive: true });
  symlinkSync(join(root, namespace), join(root, "proc", pid, "ns/net"));
}

it("gives one path of each namespace, of processes first", () => {
  for (const name of ["a", "b"]) writeFileSync(join(root, name), "");
  processIn("1", "a");
  processIn("20", "a");
  processIn("3", "b");
  // A process that has just ended, and what is no process.
  processIn("4", "gone");
  mkdirSync(join(root, "proc/sys"));
  mkdirSync(join(root, "netns"));
  writeFileSync(join(root, "netns/named"), "");
  symlinkSync(join(root, "b"), join(root, "netns/b"));
  expect(listNetworkNamespaces(join(root, "proc"), join(root, "netns"))).toEqual([
    join(root, "proc/1/ns/net"),
    join(root, "proc/3/ns/net"),
    join(root, "netns/named"),
  ]);
  expect(listNetworkNamespaces(join(root, "none"), join(root, "a"))).toEqual([]);
});
