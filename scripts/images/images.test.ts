import { describe, expect, it } from "vitest";
import { checkTree } from "./check-tree.ts";
import { launcherFlags } from "../shell-word.ts";
import { isReadAtRunTime } from "./command-tree.ts";
import { sourcesFrom } from "./debian.ts";
import { debianLockText, parseDebianLock, parseDownload, pinsOf } from "./debian-lock.ts";
import { readElf } from "./elf.ts";
import { joinTrees, linkChain, mergedPath } from "./file-tree.ts";
import type { Entry } from "./file-tree.ts";
import { packLayer } from "./layer.ts";
import { chooseFiles } from "./libraries.ts";
import { npmClosure } from "./npm-lock.ts";
import { imageLayout, packImage } from "./oci.ts";
import { PLATFORMS } from "./platforms.ts";
import { RECIPES } from "./recipes.ts";
import { elfFile } from "./test-support/elf-file.ts";

const { amd64, arm64 } = PLATFORMS;
const file = (content: Buffer | string, mode = 0o644): Entry => ({ kind: "file", mode, content: Buffer.from(content) });
const link = (target: string): Entry => ({ kind: "link", target });
const readEntry = (entry: Entry): ReturnType<typeof readElf> =>
  entry.kind === "file" && Buffer.isBuffer(entry.content) ? readElf(entry.content) : undefined;
interface Index {
  readonly manifests: readonly { readonly digest: string }[];
}

const X64 = "/usr/lib/x86_64-linux-gnu";

describe("ELF files", () => {
  it("tell their machine, their linker and their libraries", () => {
    expect(readElf(elfFile({ machine: 62, interpreter: "/lib64/ld.so", needed: ["libm.so.6", "libc.so.6"] }))).toEqual({
      machine: 62,
      interpreter: "/lib64/ld.so",
      needed: ["libm.so.6", "libc.so.6"],
    });
    expect(readElf(elfFile({ machine: 183 }))).toEqual({ machine: 183, interpreter: undefined, needed: [] });
    expect(readElf(Buffer.from("#!/bin/sh\n".repeat(10)))).toBeUndefined();
  });

  it("are those that the system's own Node is", async () => {
    const { readFile } = await import("node:fs/promises");
    const facts = readElf(await readFile(process.execPath));
    expect(facts?.machine).toBe(PLATFORMS[process.arch === "arm64" ? "arm64" : "amd64"].elfMachine);
    expect(facts?.needed).toContain("libc.so.6");
  });
});

describe("the files of packages", () => {
  const packages = new Map<string, Entry>([
    ["/usr/sbin/tool", file(elfFile({ machine: 62, interpreter: "/lib64/ld.so", needed: ["libone.so.1"] }))],
    [`${X64}/libone.so.1`, link("libone.so.1.2")],
    [`${X64}/libone.so.1.2`, link("libone.so.1.2.3")],
    [`${X64}/libone.so.1.2.3`, file(elfFile({ machine: 62, needed: ["libtwo.so"] }))],
    [`${X64}/libtwo.so`, file(elfFile({ machine: 62 }))],
    [`${X64}/libopened.so`, file(elfFile({ machine: 62 }))],
    [`${X64}/libunused.so`, file(elfFile({ machine: 62 }))],
    ["/usr/lib64/ld.so", link("/lib/x86_64-linux-gnu/ld.so")],
    [`${X64}/ld.so`, file(elfFile({ machine: 62 }))],
  ]);

  it("are chosen by what programs are linked with, and by no more", () => {
    const chosen = chooseFiles(packages, X64, readEntry, { wanted: ["/usr/sbin/tool"], linked: ["libopened.so"] });
    expect(chosen).toEqual([...packages.keys()].filter((path) => !path.includes("unused")).toSorted());
  });

  it("a library that no package has is named with what needs it", () => {
    const without = new Map([...packages].filter(([path]) => !path.endsWith("libtwo.so")));
    expect(() => chooseFiles(without, X64, readEntry, { wanted: ["/usr/sbin/tool"], linked: [] })).toThrow(
      `${X64}/libone.so.1.2.3 needs ${X64}/libtwo.so, which no package of the recipe has`,
    );
  });

  it("lie where the merged folders have them", () => {
    expect(["/lib/x/y", "/bin/sh", "/lib64/ld.so", "/library", "/usr/lib/x"].map(mergedPath)).toEqual([
      "/usr/lib/x/y",
      "/usr/bin/sh",
      "/usr/lib64/ld.so",
      "/library",
      "/usr/lib/x",
    ]);
  });

  it("links in a circle are an error, and links to nothing lead nowhere", () => {
    const tree = new Map([
      ["/a", link("b")],
      ["/b", link("/a")],
      ["/c", link("/d")],
    ]);
    expect(() => linkChain(tree, "/a")).toThrow("/a: links lead in a circle");
    expect(linkChain(tree, "/c")).toBeUndefined();
  });

  it("never hide each other", () => {
    const [one, other] = [new Map([["/a", file("1")]]), new Map([["/a", file("2")]])];
    expect(() => joinTrees(one, other)).toThrow("/a: two parts of the image have it");
    expect([...joinTrees(one, new Map(one))]).toHaveLength(1);
  });
});

describe("the sources of packages", () => {
  it("are those of the images' Debian, at the mirrors that this machine has for its own", () => {
    const targets = ["bookworm main", "bookworm main", "bookworm-updates main", "bookworm contrib", "nodistro main", "sdk-bookworm main"];
    const lines = [...targets.map((one) => `mirror:/debian ${one}`), "mirror:/security bookworm-security main"].join("\n");
    expect(sourcesFrom(lines, "bookworm").trim().split("\n")).toEqual(
      ["mirror:/debian trixie", "mirror:/debian trixie-updates", "mirror:/security trixie-security"].map(
        (place) => `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${place} main`,
      ),
    );
  });
});

describe("the lock file", () => {
  const sha256 = "ab".repeat(32);
  const pin = { arch: "arm64", name: "libbpf1", version: "1:1.1.2-0+deb12u1", sha256 } as const;

  it("comes back as it was written", () => {
    expect(parseDebianLock(debianLockText([pin]))).toEqual([pin]);
  });

  it("is written from what apt-get says", () => {
    expect(parseDownload(`'http://mirror/libbpf1_1.deb' libbpf1_1%3a1.1.2-0+deb12u1_arm64.deb 140164 SHA256:${sha256}`)).toEqual(pin);
    expect(parseDownload("WARNING: something else")).toBeUndefined();
  });

  it("names a line it can't read, and a package it lacks", () => {
    expect(() => parseDebianLock("amd64 nftables 1.0.6")).toThrow('no package is named by "amd64 nftables 1.0.6"');
    expect(() => pinsOf([pin], "amd64", ["libbpf1"])).toThrow("no libbpf1 for amd64: run npm run image -- --update");
  });
});

describe("what the command needs from npm", () => {
  const lock = {
    "packages/cli": {
      version: "0.1.0",
      name: "@turnout/cli",
      dependencies: { "@turnout/core": "*", a: "1" },
      optionalDependencies: { n: "1", m: "1", gone: "1" },
    },
    "packages/core": { version: "0.2.0", name: "@turnout/core" },
    "node_modules/@turnout/core": { link: true, resolved: "packages/core" },
    "node_modules/a": { version: "1.0.0", dependencies: { b: "2" }, license: "MIT" },
    "node_modules/a/node_modules/b": { version: "2.0.0" },
    "node_modules/b": { version: "1.0.0" },
    "node_modules/n": { version: "1.0.0", os: ["linux"], cpu: ["arm64"] },
    "node_modules/m": { version: "1.0.0", os: ["darwin"] },
  };

  it("is found as Node would find it, for the machine asked for", () => {
    const names = npmClosure(lock, "packages/cli", arm64).map(({ name, version }) => `${name}@${version}`);
    expect(names).toEqual(["@turnout/cli@0.1.0", "@turnout/core@0.2.0", "a@1.0.0", "b@2.0.0", "n@1.0.0"]);
    expect(npmClosure(lock, "packages/cli", amd64).map(({ name }) => name)).not.toContain("n");
  });

  it("a package that the lock file lacks is an error", () => {
    expect(() => npmClosure({ p: { dependencies: { q: "1" } } }, "p", amd64)).toThrow("package-lock.json has no q, which p needs");
  });

  it("is less than what is in its packages", () => {
    const paths = [
      "/package.json",
      "/dist/a.js",
      "/src/a.ts",
      "/a.cjs",
      "/linux_x64/k.node",
      "/musl_x64/k.node",
      "/linux_arm64/k.node",
      "/README.md",
    ];
    expect(paths.filter((path) => isReadAtRunTime(path, amd64))).toEqual(["/package.json", "/dist/a.js", "/a.cjs", "/linux_x64/k.node"]);
  });
});

describe("an image", () => {
  const tree = new Map<string, Entry>([
    ["/usr/bin/b", file("b", 0o755)],
    ["/usr/bin/a", link("b")],
    ["/tmp", { kind: "folder", mode: 0o1777 }],
  ]);
  const start = {
    arch: "amd64",
    title: "T",
    version: "1",
    entrypoint: ["/usr/bin/node", "main.js"],
    command: ["run"],
    uid: 65_532,
  } as const;

  it("has the same bytes whenever, in whatever order and under whatever mask it is packed", () => {
    const first = packLayer(tree);
    const mask = process.umask(0o077);
    const second = packLayer(new Map([...tree].toReversed()));
    process.umask(mask);
    expect(second).toEqual(first);
    expect(packLayer(new Map([...tree, ["/usr/bin/b", file("c", 0o755)]])).diffId).not.toBe(first.diffId);
    expect(first.filesBytes).toBe(1);
  });

  it("is a layout that has every part under its digest", async () => {
    const { createHash } = await import("node:crypto");
    const images = [packImage([packLayer(tree)], start), packImage([packLayer(tree)], { ...start, arch: "arm64" })];
    const { layout, digest } = imageLayout(images, "turnout.local/turnout-nft:dev");
    const read = (path: string): Index => JSON.parse((layout.get(path) ?? Buffer.of()).toString()) as Index;
    expect(read("index.json").manifests).toEqual([
      expect.objectContaining({
        digest,
        annotations: { "io.containerd.image.name": "turnout.local/turnout-nft:dev", "org.opencontainers.image.ref.name": "dev" },
      }),
    ]);
    expect(read(`blobs/${digest.replace(":", "/")}`).manifests.map((one) => one.digest)).toEqual(
      images.map(({ manifest }) => manifest.digest),
    );
    const blobs = [...layout].filter(([path]) => path.startsWith("blobs/"));
    expect(blobs.map(([path]) => path)).toEqual(
      blobs.map(([, content]) => `blobs/sha256/${createHash("sha256").update(content).digest("hex")}`),
    );
  });

  it("starts Node with the flags of the launcher", async () => {
    const { readFile } = await import("node:fs/promises");
    const launcher = await readFile(new URL("../../packages/client/launcher.sh", import.meta.url), "utf8");
    expect(launcherFlags(launcher)).toContain("--max-semi-space-size=2");
    expect(() => launcherFlags('exec node "$main"')).toThrow("does not start Node as it is known here");
  });

  it("of a backend that needs no rights starts as another user than root", () => {
    expect(Object.values(RECIPES).flatMap(({ name, uid }) => (uid === 0 ? [] : [name]))).toEqual(["userspace", "serve"]);
    const { blobs } = packImage([packLayer(tree)], start);
    expect([...blobs.values()].some((blob) => blob.includes('"User":"65532:65532"'))).toBe(true);
  });

  it("is refused with what does not belong there, or is missing", () => {
    const wrong = new Map<string, Entry>([
      ["/usr/bin/other", file(elfFile({ machine: 183, interpreter: "/lib/ld.so", needed: ["libx.so"] }))],
      ["/usr/bin/sh", file("")],
      ["/usr/sbin/dangling", link("nowhere")],
      ["/usr/lib/programs/sockets.bpf.o", file(elfFile({ machine: 247 }))],
    ]);
    expect(checkTree(wrong, amd64, readEntry)).toEqual([
      "/usr/bin/other is for machine 183, not for amd64",
      `/usr/bin/other needs ${X64}/libx.so`,
      "/usr/bin/other needs /usr/lib/ld.so",
      "/usr/bin/sh does not belong into an image",
      "/usr/sbin/dangling leads to nothing",
    ]);
    expect(checkTree(tree, amd64, readEntry)).toEqual([]);
  });
});
