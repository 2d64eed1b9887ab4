import { describe, expect, it } from "vitest";
import { hiddenFolders } from "./boot.ts";

describe("hiddenFolders", () => {
  const rows: readonly { name: string; paths: readonly string[]; folders: readonly string[] }[] = [
    { name: "nothing for a tree elsewhere", paths: ["/work/turnout/", "/usr/bin/node", "/tmpfs/x/y"], folders: [] },
    { name: "the top folder of a path", paths: ["/tmp/clone/node_modules/.bin/node"], folders: ["/tmp/clone"] },
    { name: "a folder itself", paths: ["/run/clone/"], folders: ["/run/clone"] },
    { name: "each folder once", paths: ["/tmp/a/b", "/tmp/a/c", "/run/a/b"], folders: ["/tmp/a", "/run/a"] },
    { name: "nothing for a file of its own", paths: ["/tmp/program"], folders: [] },
    { name: "nothing for what is no absolute path", paths: ["node", "--flag=/tmp/a/b", "x/tmp/a/b"], folders: [] },
  ];
  it.each(rows)("gives $name", ({ paths, folders }) => {
    expect(hiddenFolders(paths)).toEqual(folders);
  });
});
