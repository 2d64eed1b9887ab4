import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Source } from "./sources.ts";

/** A page of the site. */
export interface SitePage {
  /** Of the HTML file, relative to the site's folder. */
  readonly path: string;
  /** As the navigation calls it. */
  readonly title: string;
  /** The Markdown that it shows. */
  readonly text: string;
  /** Where that is, relative to the repository: links in it are relative to this. */
  readonly source: string;
}

/** A group of the navigation. */
export interface Section {
  readonly title: string;
  readonly pages: readonly SitePage[];
}

/** A page, by its source: a file, and of README.md which of its second-level headings, or those that no other page has. */
interface Wanted {
  readonly path: string;
  readonly title: string;
  readonly source: string;
  readonly headings?: readonly string[] | "the rest";
}

/** The pages in the order in which they are read: `pages.yaml`. */
const SECTIONS = parse(readFileSync(new URL("pages.yaml", import.meta.url), "utf8")) as readonly {
  readonly title: string;
  readonly pages: readonly Wanted[];
}[];

/** Where pages go that {@link SECTIONS} doesn't name. The last one takes all. */
const OTHERS: readonly (readonly [title: string, folder: RegExp])[] = [
  ["Packages", /^packages\//],
  ["Examples", /^(?:examples|e2e)\//],
  ["Decisions", /^docs\/adr\//],
  ["More", /^/],
];

/**
 * Sort all sources into pages and sections. Pure.
 * @throws {Error} when a page's source or heading is missing.
 */
export function catalogOf(sources: readonly Source[]): readonly Section[] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const named = SECTIONS.map(({ title, pages }): Section => ({ title, pages: pages.map((one) => pageOf(one, byPath)) }));
  const used = new Set(SECTIONS.flatMap(({ pages }) => pages.map(({ source }) => source)));
  const rest = sources.filter(({ path }) => !used.has(path));
  const groups = Map.groupBy(rest, ({ path }) => OTHERS.findIndex(([, folder]) => folder.test(path)));
  const others = OTHERS.map(([title], index): Section => ({ title, pages: (groups.get(index) ?? []).map(otherPage) }));
  return [...named, ...others].filter(({ pages }) => pages.length > 0);
}

function pageOf({ path, title, source, headings }: Wanted, byPath: ReadonlyMap<string, Source>): SitePage {
  const found = byPath.get(source);
  if (found === undefined) throw new Error(`site/build/pages.yaml names ${source}, which is not there`);
  if (headings === undefined) return { path, title, source, text: found.text };
  const parts = partsOf(found.text);
  const elsewhere = SECTIONS.flatMap(({ pages }) =>
    pages.flatMap((one) => (one.source !== source || one.path === path ? [] : (one.headings ?? []))),
  );
  const wanted = headings === "the rest" ? parts.map(({ heading }) => heading).filter((one) => !elsewhere.includes(one)) : headings;
  const texts = wanted.map((heading) => {
    const part = parts.find((one) => one.heading === heading);
    if (part === undefined) throw new Error(`${source} has no heading ${JSON.stringify(heading)}: site/build/pages.yaml names it`);
    return part.text;
  });
  // A page has one first-level heading: its title, or that of its first part.
  const [first = "", ...rest] = texts;
  const isOne = wanted[0] === title;
  return { path, title, source, text: isOne ? [first.replace(/^## /, "# "), ...rest].join("\n") : [`# ${title}\n`, ...texts].join("\n") };
}

function otherPage({ path, text }: Source): SitePage {
  const [, title = path] = /^# (.+)$/m.exec(text) ?? [];
  const plain = title.replaceAll("`", "");
  return {
    path: `${path
      .replace(/^docs\//, "")
      .replace(/(?:\/README)?\.md$/, "")
      .toLowerCase()}.html`,
    title: plain,
    source: path,
    text,
  };
}

interface Part {
  readonly heading: string;
  readonly text: string;
}

/** Cut a page at its second-level headings; what stands before the first is not among the parts. Pure. */
export function partsOf(text: string): readonly Part[] {
  return text.split(/^(?=## )/m).flatMap((part) => {
    const [, heading] = /^## (.+)$/m.exec(part) ?? [];
    return heading === undefined || !part.startsWith("## ") ? [] : [{ heading, text: part }];
  });
}
