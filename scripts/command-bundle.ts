import { readdirSync, rmSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** This file runs from the sources, in tests, and from dist. */
const ROOT = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../" : "../../", import.meta.url));
const PACKAGES = join(ROOT, "packages");
const MAIN = join(PACKAGES, "cli/dist/main.js");
const FOLDER = join(PACKAGES, "cli/dist/command");
/** Large, and needed by few: loaded from beside the command, as it is where it isn't bundled. */
const OUTSIDE = ["@grpc/grpc-js"];

/**
 * Write where a module lies so that it stays true in a bundle: files beside a module, and packages that it loads by require, are found from there.
 * Pure.
 */
export function originalPlace(code: string, file: string): string {
  if (!code.includes("import.meta.url")) return code;
  const [name = "", folder, ...path] = relative(PACKAGES, file).split(sep);
  if (name.startsWith("..") || folder !== "dist") return code;
  // Every package has an index.js in its dist, and it is what the package's name leads to.
  return code.replaceAll("import.meta.url", `new URL("./${path.join("/")}", import.meta.resolve("@turnout/${name}")).href`);
}

/**
 * Write characters beyond ASCII as escapes, which is the same program: V8 keeps a text with one such character at two bytes for each.
 *
 * Edges: in strings, templates, expressions and names. Pure.
 * @throws {Error} where a backslash stands before such a character, since two escapes would be something else.
 */
export function inASCII(code: string): string {
  return code.replace(/\\?[^\x00-\x7f]/g, (text) => {
    if (text.length > 1) throw new Error(`the escape ${text} can't be written in ASCII`);
    return `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Make one program of the command `turnout` and what it imports: 800 modules take longer to find than to compile. */
async function bundleCommand(): Promise<void> {
  const bundle = await rolldown({
    input: { main: MAIN },
    platform: "node",
    external: OUTSIDE,
    plugins: [
      { name: "original-place", transform: originalPlace },
      {
        name: "in-ascii",
        generateBundle: (_, files) => {
          for (const file of Object.values(files)) if (file.type === "chunk") file.code = inASCII(file.code);
        },
      },
    ],
    logLevel: "silent",
  });
  rmSync(FOLDER, { recursive: true, force: true });
  // Names stay, for stacks; V8 keeps the text of what it runs, so blanks are memory.
  const minify = { compress: false, mangle: false, codegen: { removeWhitespace: true } };
  await bundle.write({
    dir: FOLDER,
    format: "esm",
    comments: false,
    minify,
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  });
  await bundle.close();
}

/** When a file was written, ms; 0 where there is none. */
function writtenMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function isUpToDate(): boolean {
  const inputs = readdirSync(PACKAGES).map((name) => join(PACKAGES, name, "dist/.tsbuildinfo"));
  const bundled = writtenMs(join(FOLDER, "main.js"));
  return [...inputs, fileURLToPath(import.meta.url), join(ROOT, "package-lock.json")].every((path) => writtenMs(path) < bundled);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isUpToDate()) await bundleCommand();
