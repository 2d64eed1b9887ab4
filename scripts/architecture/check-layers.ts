import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/**
 * The layers of packages, by folder below `src`, and which other layers of the package each may import. Files directly in `src` are entry points and wiring: they may
 * import every layer and no layer imports them. A key such as `client/daemon` has the layers within a layer. Why these: docs/adr/0022-rooms.md.
 */
export type Layers = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/**
 * Read the tables `| layer of … | holds | may import |` of a page. Pure.
 *
 * Shape: a line may name several layers. What it lets them import is `nothing`, `all`, or a list; `all but a and b` takes some away.
 */
export function layersIn(page: string): Layers {
  const tables = page.matchAll(/^\| layer of `([\w/]+)` \| holds \| may import \|\n\|---.*\n((?:\|.*\n)+)/gm);
  return Object.fromEntries(
    Array.from(tables, ([, name = "", lines = ""]) => {
      const rows = lines.split("\n").flatMap((line) => {
        const [first = "", , last = ""] = line.split(" | ");
        return [...first.matchAll(/`([\w-]+)\/`/g)].map(([, layer = ""]) => [layer, last.replace(/ \|$/, "")] as const);
      });
      const names = rows.map(([layer]) => layer);
      return [name, Object.fromEntries(rows.map(([layer, says]) => [layer, allowedBy(says, names)]))];
    }),
  );
}

function allowedBy(says: string, all: readonly string[]): readonly string[] {
  const [what = "", except = ""] = says.split(" but ");
  if (what === "all") return all.filter((one) => !except.split(/, | and /).includes(one));
  return what === "nothing" ? [] : what.split(", ");
}

/** The layer of a file among those of a key; "" for a file that lies beside them, undefined for one from elsewhere. */
function layerIn(key: string, path: string): string | undefined {
  const [name, ...folders] = key.split("/");
  const around = `${["packages", name, "src", ...folders].join("/")}/`;
  return path.startsWith(around) ? path.slice(around.length, Math.max(around.length, path.indexOf("/", around.length))) : undefined;
}

function layerProblem(file: SourceFile, specifier: string, tables: Layers): string | undefined {
  const target = posix.join(posix.dirname(file.path), specifier);
  if (!file.isTest && target.includes("/test-support/")) return "only tests import what lies in test-support";
  if (file.isTest) return undefined;
  for (const [key, layers] of Object.entries(tables)) {
    const [from, to] = [layerIn(key, file.path), layerIn(key, target)];
    if (from === undefined || to === undefined || from === to || from === "") continue;
    const allowed = layers[from];
    if (allowed === undefined) return `${key}/${from} is no layer of ARCHITECTURE.md`;
    if (!allowed.includes(to))
      return `${from} may import ${allowed.length === 0 ? "no other layer" : allowed.join(", ")}, not ${to === "" ? "an entry point" : to}`;
  }
  return undefined;
}

/** Check imports inside a package against its layers, and that nothing published imports what only tests use. Pure. */
export function checkLayers(files: readonly SourceFile[], tables: Layers): Finding[] {
  return files.flatMap((file) =>
    file.imports
      .filter(({ specifier }) => specifier.startsWith("."))
      .flatMap(({ specifier, line }) => {
        const what = layerProblem(file, specifier, tables);
        return what === undefined ? [] : [{ rule: "layers", path: file.path, line, subject: specifier, what }];
      }),
  );
}
