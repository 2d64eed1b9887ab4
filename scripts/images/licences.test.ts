import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Entry, FileTree } from "./file-tree.ts";
import { readText } from "./image-trees.ts";
import { debianLicence, lenderOf, licenceProblems, npmLicence, npmLicences } from "./licences.ts";

const file = (text: string): Entry => ({ kind: "file", mode: 0o644, content: Buffer.from(text) });
const link = (target: string): Entry => ({ kind: "link", target });

describe("licences of Debian's packages", () => {
  const base: FileTree = new Map([
    ["/usr/share/doc/gcc-12-base/copyright", file("see /usr/share/common-licenses/GPL-3.")],
    ["/usr/share/doc/gcc-12-base/NEWS.html", file("news")],
  ]);
  const common: FileTree = new Map([
    ["/usr/share/doc/base-files/copyright", file("GPL")],
    ["/usr/share/common-licenses/GPL-3", file("the text")],
  ]);

  it("are taken, with the texts that they have in common", () => {
    expect([...debianLicence(base, "gcc-12-base").keys()]).toEqual(["/usr/share/doc/gcc-12-base/copyright"]);
    expect([...debianLicence(common, "base-files").keys()].toSorted()).toEqual([...common.keys()].toSorted());
  });

  it("are links where a package has its documents from another", () => {
    const tree = new Map([["/usr/share/doc/libgcc-s1", link("gcc-12-base")]]);
    expect(lenderOf(tree, "libgcc-s1")).toBe("gcc-12-base");
    expect(lenderOf(base, "gcc-12-base")).toBeUndefined();
    expect(debianLicence(tree, "libgcc-s1")).toEqual(new Map([["/usr/share/doc/libgcc-s1/copyright", link("../gcc-12-base/copyright")]]));
  });

  it("that an image lacks are named, and texts that they name", () => {
    const bill = JSON.stringify({
      components: [{ name: "debian" }, ...["libgcc-s1", "gcc-12-base"].map((name) => ({ name, purl: `pkg:deb/debian/${name}@12` }))],
    });
    const lent: FileTree = new Map([["/usr/share/doc/libgcc-s1/copyright", link("../gcc-12-base/copyright")]]);
    expect(licenceProblems(new Map([...lent, ...base, ...common]), bill, readText)).toEqual([]);
    expect(licenceProblems(new Map([...lent, ...base]), bill, readText)).toEqual([
      "the licence of libgcc-s1 names /usr/share/common-licenses/GPL-3",
      "the licence of gcc-12-base names /usr/share/common-licenses/GPL-3",
    ]);
    expect(licenceProblems(lent, bill, readText)).toEqual([
      "libgcc-s1 has no licence at /usr/share/doc/libgcc-s1/copyright",
      "gcc-12-base has no licence at /usr/share/doc/gcc-12-base/copyright",
    ]);
  });
});

describe("licences of npm's packages", () => {
  let root = "";
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "turnout-licences-"));
    write("LICENSE", "Apache, in full\n");
    write("node_modules/a/LICENSE.md", "MIT\n");
    write("node_modules/koffi/LICENSE.txt", "koffi's\n");
    write("node_modules/@koromix/koffi-linux-x64/koffi.node", "");
    write("node_modules/b/dist/one.js", "// Copyright B\n// Licensed under the Apache License, Version 2.0\nexport {};\n");
    write("node_modules/b/dist/two.js", "// Copyright B\n// Licensed under the Apache License, Version 2.0\nlet two;\n");
    write("node_modules/b/dist/three.js", "// Copyright C, BSD\n\n// a comment\n");
    write("node_modules/none/index.js", "// says nothing\n");
  });
  afterEach(() => {
    rmSync(root, { recursive: true, force: true });
  });

  function write(path: string, text: string): void {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const one = (name: string): Parameters<typeof npmLicences>[1][0] => ({
    name,
    version: "1.0.0",
    license: "MIT",
    integrity: undefined,
    place: `node_modules/${name}`,
  });

  it("are their files, and where there is none their notices, each once", () => {
    const tree = npmLicences(root, ["a", "b", "@koromix/koffi-linux-x64"].map(one));
    expect(Object.fromEntries([...tree].map(([path, entry]) => [path, readText(entry)]))).toEqual({
      "/usr/share/doc/turnout/a/LICENSE": "MIT\n",
      "/usr/share/doc/turnout/b/LICENSE":
        "// Copyright B\n// Licensed under the Apache License, Version 2.0\n\n// Copyright C, BSD\n\nApache, in full\n",
      "/usr/share/doc/turnout/@koromix/koffi-linux-x64/LICENSE": "koffi's\n",
    });
  });

  it("that are nowhere are an error", () => {
    expect(() => npmLicences(root, [one("none")])).toThrow("none has no licence: neither a file of its own nor notices in its sources");
  });

  it("that an image lacks are named", () => {
    const bill = JSON.stringify({ components: [{ name: "@b/c", purl: "pkg:npm/%40b/c@1.0.0" }] });
    expect(licenceProblems(npmLicence("@b/c", file("MIT")), bill, readText)).toEqual([]);
    for (const tree of [new Map<string, Entry>(), npmLicence("@b/c", file(" \n"))])
      expect(licenceProblems(tree, bill, readText)).toEqual(["@b/c has no licence at /usr/share/doc/turnout/@b/c/LICENSE"]);
  });
});
