import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { inASCII, originalPlace } from "./command-bundle.ts";

const PACKAGES = fileURLToPath(new URL("../packages/", import.meta.url));
const BUNDLED = join(PACKAGES, "cli/dist/command/main.js");

/** Prints each module that is loaded until the command has ended, as JSON in its last line. */
const LOADED = `
import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
process.on("exit", () => process.stdout.write("\\n" + JSON.stringify(urls)));`;

function modulesOf(...args: readonly string[]): readonly string[] {
  const hook = `data:text/javascript,${encodeURIComponent(LOADED)}`;
  const out = execFileSync(process.execPath, ["--import", hook, BUNDLED, ...args], { encoding: "utf8" });
  return JSON.parse(out.split("\n").at(-1) ?? "") as readonly string[];
}

describe("the place of a module in a bundle", () => {
  it("is where the module was before", () => {
    expect(originalPlace('new URL("../../../web/", import.meta.url)', join(PACKAGES, "client/dist/daemon/insight/page.js"))).toBe(
      'new URL("../../../web/", new URL("./daemon/insight/page.js", import.meta.resolve("@turnout/client")).href)',
    );
  });

  it.each([
    ["of a module that doesn't ask", "export const one = 1;", join(PACKAGES, "core/dist/index.js")],
    ["of a package of others", "import.meta.url", "/somewhere/node_modules/other/index.js"],
  ])("%s is left alone", (_, code, file) => expect(originalPlace(code, file)).toBe(code));

  it("can be found: each package's name leads to the index.js in its dist", () => {
    // That one has no code.
    expect(readdirSync(PACKAGES).filter((name) => !existsSync(join(PACKAGES, name, "src/index.ts")))).toEqual(["node"]);
  });
});

describe("a program in ASCII", () => {
  it("is the same program", async () => {
    const written = inASCII('const µs = "…"; export default [µs, `日`, "日😀".replace(/[日]/u, "é")];');
    expect(written).toMatch(/^[\x20-\x7e]*$/);
    const module = (await import(`data:text/javascript,${encodeURIComponent(written)}`)) as { readonly default: unknown };
    expect(module.default).toEqual(["…", "日", "é😀"]);
  });

  it("is refused where it would be another", () => expect(() => inASCII('"\\é"')).toThrow("the escape \\é"));
});

describe("the bundled command", () => {
  it("starts from few files, and without what only other commands need", () => {
    const files = modulesOf("run", "--help").filter((url) => !url.startsWith("node:"));
    expect(files.length).toBeLessThan(40);
    expect(files.filter((url) => url.includes("node_modules"))).toEqual([]);
    expect(files.filter((url) => /conformance|testing|demo|serve/.test(url))).toEqual([]);
  });

  it("imports node:http nowhere: that reads all its exports, of which one loads undici", () => {
    const folder = join(BUNDLED, "..");
    const importing = readdirSync(folder).filter((name) =>
      /(?:from|import)\s*\(?"(?:node:)?http"/.test(readFileSync(join(folder, name), "utf8")),
    );
    expect(importing).toEqual([]);
  });
});
