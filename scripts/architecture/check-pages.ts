import type { Finding } from "./finding.ts";

/** A Markdown page of the repository. */
export interface Page {
  /** Relative to the repository. */
  readonly path: string;
  readonly text: string;
}

/** The layers of each package and which others each may import, as check-layers.ts has them. */
type Layers = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Written instead of a list of all other layers. */
const ALL = "all";
const NOTHING = "nothing";

/**
 * Check that the tables `| layer of … | holds | may import |` of a page say what the architecture check holds packages to. Pure.
 *
 * Shape: a line may name several layers. What it lets them import is `nothing`, `all`, or a list; `all but a and b` takes some away.
 */
export function checkLayerTables({ path, text }: Page, layers: Layers): Finding[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index): Finding[] => {
    const [, name] = /^\| layer of `([\w/]+)` \| holds \| may import \|$/.exec(line) ?? [];
    const own = name === undefined ? undefined : layers[name];
    if (name === undefined || own === undefined) return [];
    const rows = lines.slice(
      index + 2,
      lines.findIndex((one, at) => at > index && !one.startsWith("|")),
    );
    const reported = new Map(rows.flatMap(layersOf));
    const complain = (layer: string, what: string): Finding => ({
      rule: "pages",
      path,
      line: index + 1,
      subject: `${name}/${layer}`,
      what,
    });
    const missing = Object.keys(own).filter((layer) => !reported.has(layer));
    return [
      ...missing.map((layer) => complain(layer, `layer ${name}/${layer} is missing in the table`)),
      ...[...reported].flatMap(([layer, says]) => {
        const has = own[layer];
        if (has === undefined) return [complain(layer, `${name}/${layer} is no layer`)];
        const allowed = allowedBy(
          says,
          Object.keys(own).filter((one) => one !== layer),
        );
        const isSo = allowed.size === has.length && has.every((one) => allowed.has(one));
        return isSo ? [] : [complain(layer, `${layer} may import ${has.join(", ") || NOTHING}, and the table says ${says}`)];
      }),
    ];
  });
}

/** The layers that a table's line is about, each with what it may import. */
function layersOf(line: string): readonly (readonly [layer: string, says: string])[] {
  const [, first = "", , last = ""] = line.split(" | ").length === 3 ? ["", ...line.replace(/^\| | \|$/g, "").split(" | ")] : [];
  return [...first.matchAll(/`([\w-]+)\/`/g)].map(([, layer = ""]) => [layer, last.trim()] as const);
}

function allowedBy(says: string, others: readonly string[]): ReadonlySet<string> {
  const [what = "", except = ""] = says.split(" but ");
  const listed = (text: string): readonly string[] => text.split(/, | and /).filter((one) => one !== "");
  const excepted = listed(except);
  if (what === ALL) return new Set(others.filter((one) => !excepted.includes(one)));
  return new Set(what === NOTHING ? [] : listed(what));
}

/** Folders that every package may have, and that mean the same everywhere. */
const COMMON_FOLDERS: readonly string[] = ["gen", "test-support"];

/**
 * Check that what a package's README lists under `## Inside` is there: files of `src`, without `.ts`, and folders; and that no folder of `src` is missing
 * in the list. Pure.
 * @param sources paths of all files of the repository's packages
 */
export function checkInside(pages: readonly Page[], sources: readonly string[]): Finding[] {
  return pages.flatMap(({ path, text }) => {
    const [, folder] = /^(packages\/[^/]+)\/README\.md$/.exec(path) ?? [];
    const [before = "", inside = ""] = text.split(/^## Inside\n/m);
    if (folder === undefined) return [];
    const below = sources.flatMap((source) => (source.startsWith(`${folder}/src/`) ? [source.slice(folder.length + 5).split("/")] : []));
    const folders = new Set(below.flatMap(([name = "", ...rest]) => (rest.length === 0 || COMMON_FOLDERS.includes(name) ? [] : [name])));
    const missing = [...folders].filter((name) => !inside.includes(`\`${name}\``) && !inside.includes(`\`${name}/`));
    const [section = ""] = inside.split(/^## /m);
    const first = before.split("\n").length + 1;
    const listed = section.split("\n").flatMap((line, index) => {
      const [, cell = ""] = /^\| ([^|]*)\|/.exec(line) ?? [];
      const isThere = (name: string): boolean =>
        sources.some((source) => source === `${folder}/src/${name}.ts` || source.startsWith(`${folder}/src/${name.replace(/\/$/, "")}/`));
      return [...cell.matchAll(/`([^`]+)`/g)]
        .flatMap(([, name = ""]) => (isThere(name) ? [] : [name]))
        .map((name) => ({ rule: "pages", path, line: first + index, subject: name, what: `${folder}/src has no ${name}` }));
    });
    const what = (name: string): string => `${folder}/src/${name} is missing in the table below "## Inside"`;
    return [...listed, ...missing.map((name) => ({ rule: "pages", path, line: first, subject: name, what: what(name) }))];
  });
}
