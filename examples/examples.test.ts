import { execFile, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patternOf, sessionOf } from "./doc-session.ts";
import { shopManifests } from "./test-support/shop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Without what `npm test` tells its children: the empty directory is configured by nobody, and finds no program of the checkout. */
const ENV = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_"))),
  PATH: (process.env["PATH"] ?? "")
    .split(":")
    .filter((directory) => !directory.startsWith(ROOT))
    .join(":"),
  TURNOUT: ROOT,
};

/** A release to come: the core has changed, and all that depends on it pins the new one. */
const LATER_CORE = "0.2.0";
const LATER = "0.1.1";

/** Pack a package of Turnout again as if it were of that release, and any other as it is. */
async function raise(tarball: string, to: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-raised-"));
  try {
    await promisify(execFile)("tar", ["-xzf", tarball, "-C", directory]);
    const file = join(directory, "package", "package.json");
    const found = JSON.parse(await readFile(file, "utf8")) as Readonly<Record<string, unknown>>;
    if (String(found["name"]).startsWith("@turnout/")) await writeFile(file, `${JSON.stringify(raised(found), undefined, 2)}\n`);
    await promisify(execFile)("tar", ["-czf", to, "-C", directory, "package"]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function raised(found: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const versionOf = (name: string): string => (name === "@turnout/core" ? LATER_CORE : LATER);
  const pins = (listed: unknown): unknown =>
    Object.fromEntries(Object.entries(listed ?? {}).map(([name, pin]) => [name, name.startsWith("@turnout/") ? versionOf(name) : pin]));
  const { name, dependencies, peerDependencies } = found;
  return { ...found, version: versionOf(String(name)), dependencies: pins(dependencies), peerDependencies: pins(peerDependencies) };
}

const service = (name: string, number: number): string => shopManifests({ name, number, endpoints: ["10.1.1.5", "10.1.2.5"] });
const SHOP = service("cart", 20);
const SHOPS = `${SHOP}---${service("till", 21)}`;

describe("in an empty directory, with packages from their tarballs", () => {
  /** Holds the directory of the page's reader, and whatever the page has made beside it. */
  let parent: string;
  let directory: string;
  const path = (...names: readonly string[]): string => join(directory, ...names);
  const contents = (file: string): Promise<string> => readFile(path(file), "utf8").catch(() => "");
  const shell = async (command: string): Promise<string> =>
    (await promisify(execFile)("sh", ["-c", command], { cwd: directory, env: ENV, maxBuffer: 2 ** 28 })).stdout;

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), "turnout-examples-"));
    directory = join(parent, "backend");
    await mkdir(directory);
  });
  afterAll(() => rm(parent, { recursive: true, force: true }));

  it("docs/write-a-backend.md can be typed from top to bottom, and prints what it says", async () => {
    const session = sessionOf(await readFile(join(ROOT, "docs/write-a-backend.md"), "utf8"));
    expect(session.length).toBeGreaterThan(10);
    for (const { command, prints, line } of session) {
      const printed = (await shell(command)).trimEnd();
      expect(printed === "" ? "" : `${printed}\n`, `line ${line}: ${command}`).toMatch(prints === "" ? /^$/ : patternOf(prints));
    }
  }, 300_000);

  it("the custom backend, packed and installed elsewhere, asks for Turnout's core and brings none", async () => {
    const elsewhere = join(parent, "elsewhere", "node_modules", "turnout-backend-table");
    const text = await readFile(join(elsewhere, "package.json"), "utf8");
    expect(text).not.toContain("file:");
    const { dependencies, peerDependencies } = JSON.parse(text) as Record<string, Readonly<Record<string, string>> | undefined>;
    expect(dependencies).toEqual({ "@turnout/host": "^0.1.0" });
    expect(peerDependencies).toEqual({ "@turnout/conformance": ">=0.1.0 <1", "@turnout/core": ">=0.1.0 <1" });
    expect(await readdir(elsewhere)).toEqual(["README.md", "dist", "package.json"]);
    expect(await shell("cd ../elsewhere && find . -path '*/@turnout/core/package.json' | wc -l")).toBe("1\n");
  }, 60_000);

  it("the custom backend installs beside a later core of contract 2, and is used with that one alone", async () => {
    await mkdir(join(parent, "later"));
    for (const file of await readdir(directory)) if (/^turnout-.*\.tgz$/.test(file)) await raise(path(file), join(parent, "later", file));
    await shell("cd ../later && npm install --silent ./*.tgz");
    expect(await shell("cd ../later && find . -path '*/@turnout/core/package.json' | xargs grep -h '\"version\"'")).toBe(
      `  "version": "${LATER_CORE}",\n`,
    );
    const backend = "--backend turnout-backend-table --source file:../backend/shop.yaml --family IPv4";
    expect(await shell(`cd ../later && npx turnout render ${backend}`)).toContain("route TCP 10.96.0.20:80");
    expect(await shell("cd ../later && npx turnout conformance --backend turnout-backend-table --only R-28")).toContain("table conforms");
  }, 300_000);

  it("the custom backend keeps its table in step, adopts it after a restart, and cleans up", async () => {
    await mkdir(path("kept"));
    await writeFile(path("shop.yaml"), SHOPS);
    const backend = `--backend turnout-backend-table --backend-option directory=${path("kept")}`;
    const once = `npx turnout run ${backend} --source file:shop.yaml --once`;
    await shell(once);
    const table = JSON.parse(await contents("kept/IPv4.json")) as Record<string, { rules: readonly { to: unknown }[] }>;
    expect(table["route TCP 10.96.0.21:80"]?.rules.at(-1)?.to).toEqual(["10.1.1.5:8080", "10.1.2.5:8080"]);
    expect(await shell(`${once} --dry-run`)).toBe("");
    await writeFile(path("shop.yaml"), SHOP);
    expect(await shell(`${once} --dry-run`)).toMatch(/^remove route TCP \*:30021\nremove route TCP 10\.96\.0\.21:80\n$/);
    await shell(once);
    const keys = Object.keys(JSON.parse(await contents("kept/IPv4.json")) as object);
    expect(keys).toEqual(["host self", "route TCP *:30020", "route TCP 10.96.0.20:80"]);
    await shell(`npx turnout cleanup ${backend}`);
    expect(await contents("kept/IPv4.json")).toBe("");
  }, 60_000);

  describe("the shell backend", needs("jq"), () => {
    it("follows a file", async () => {
      await cp(join(ROOT, "examples/shell-backend"), path("shell"), { recursive: true });
      await writeFile(path("shop.yaml"), SHOP);
      const pipe = "exec node_modules/.bin/turnout print --watch -o jsonl --source file:shop.yaml | sh shell/endpoints.sh lines";
      const child = spawn("sh", ["-c", pipe], { cwd: directory, env: ENV, detached: true, stdio: ["ignore", "ignore", "inherit"] });
      const comesToSay = async (...lines: readonly string[]): Promise<void> => {
        await expect.poll(() => contents("lines/IPv4.txt"), { timeout: 20_000 }).toBe(lines.map((line) => `${line}\n`).join(""));
      };
      const servers = "10.1.1.5:8080 10.1.2.5:8080";
      const [cart, till] = ["  (shop/cart:http/TCP)", "  (shop/till:http/TCP)"];
      try {
        await comesToSay(`*:30020/TCP → ${servers}${cart}`, `10.96.0.20:80/TCP → ${servers}${cart}`);
        await writeFile(path("shop.yaml"), SHOPS);
        await comesToSay(
          `*:30020/TCP → ${servers}${cart}`,
          `*:30021/TCP → ${servers}${till}`,
          `10.96.0.20:80/TCP → ${servers}${cart}`,
          `10.96.0.21:80/TCP → ${servers}${till}`,
        );
        await writeFile(path("shop.yaml"), shopManifests({ name: "cart", number: 20, endpoints: [] }));
        await comesToSay(`*:30020/TCP → reject${cart}`, `10.96.0.20:80/TCP → reject${cart}`);
        expect(await contents("lines/IPv6.txt")).toBe("");
      } finally {
        process.kill(-(child.pid ?? 0), "SIGTERM");
      }
    }, 90_000);
  });

  it("print-state follows a node-state server in another process, and the change that comes", async () => {
    await cp(join(ROOT, "examples/print-state"), directory, { recursive: true });
    await writeFile(path("shop.yaml"), SHOP);
    const target = `unix://${path("node.sock")}`;
    const script = `node_modules/.bin/turnout serve --source file:shop.yaml --listen ${target} 2>serve.log & exec node_modules/.bin/node print-state.ts ${target} node1 > printed`;
    const child = spawn("sh", ["-c", script], { cwd: directory, env: ENV, detached: true, stdio: ["ignore", "ignore", "inherit"] });
    const comesToSay = async (text: string): Promise<void> => {
      await expect.poll(() => contents("printed"), { timeout: 20_000 }).toContain(text);
    };
    try {
      await comesToSay("10.96.0.20:80/TCP        shop/cart:http/TCP               → 10.1.1.5:8080 10.1.2.5:8080\n");
      await writeFile(path("shop.yaml"), SHOPS);
      await comesToSay("# revision 2\n");
      await comesToSay("shop/till:http/TCP");
    } finally {
      process.kill(-(child.pid ?? 0), "SIGTERM");
    }
  }, 60_000);

  it("backends come with programs of their own", async () => {
    expect(await shell("npx turnout-nft --help")).toMatch(/^Usage: turnout-nft \[options\]\n/);
  });
});
