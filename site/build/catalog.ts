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

const README = "README.md";

/** The pages in the order in which they are read. What is not named here follows in sections of its own, so nothing is ever left out. */
const SECTIONS: readonly (readonly [title: string, pages: readonly Wanted[]])[] = [
  [
    "Start",
    [
      { path: "quick-start.html", title: "Quick start", source: README, headings: ["Quick start", "Two commands"] },
      { path: "status.html", title: "What exists", source: README, headings: "the rest" },
    ],
  ],
  [
    "Concepts",
    [
      { path: "architecture.html", title: "Architecture", source: "ARCHITECTURE.md" },
      { path: "rules.html", title: "Rules", source: "docs/rules.md" },
      { path: "benchmarks.html", title: "Benchmarks", source: "docs/benchmarks.md" },
    ],
  ],
  [
    "Operate",
    [
      { path: "operations.html", title: "Operations", source: "docs/operations.md" },
      { path: "why.html", title: "Why does this packet not arrive?", source: "docs/why.md" },
      { path: "security.html", title: "Security", source: "docs/security.md" },
      { path: "kpng.html", title: "kpng's protocols", source: "docs/kpng.md" },
    ],
  ],
  [
    "Backends",
    [
      { path: "backends/nft.html", title: "nft", source: "docs/backends/nft.md" },
      { path: "backends/iptables.html", title: "iptables", source: "docs/backends/iptables.md" },
      { path: "backends/ipvs.html", title: "ipvs", source: "docs/backends/ipvs.md" },
      { path: "backends/ebpf.html", title: "eBPF", source: "docs/backends/ebpf.md" },
      { path: "backends/userspace.html", title: "userspace", source: "docs/backends/userspace.md" },
      { path: "backends/winkernel.html", title: "winkernel", source: "docs/backends/winkernel.md" },
    ],
  ],
  [
    "Extend",
    [
      { path: "write-a-backend.html", title: "Write a backend", source: "docs/write-a-backend.md" },
      { path: "contract.html", title: "The contract", source: "docs/contract.md" },
      { path: "contributing.html", title: "Contributing", source: "CONTRIBUTING.md" },
      { path: "testing.html", title: "Testing", source: "docs/testing.md" },
    ],
  ],
  [
    "Project",
    [
      { path: "lifecycle.html", title: "Lifecycle and support", source: "docs/lifecycle.md" },
      { path: "releasing.html", title: "Releasing", source: "docs/releasing.md" },
      { path: "report-a-vulnerability.html", title: "Report a vulnerability", source: "SECURITY.md" },
    ],
  ],
];

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
  const named = SECTIONS.map(([title, wanted]): Section => ({ title, pages: wanted.map((one) => pageOf(one, byPath)) }));
  const used = new Set(SECTIONS.flatMap(([, pages]) => pages.map(({ source }) => source)));
  const rest = sources.filter(({ path }) => !used.has(path));
  const groups = Map.groupBy(rest, ({ path }) => OTHERS.findIndex(([, folder]) => folder.test(path)));
  const others = OTHERS.map(([title], index): Section => ({ title, pages: (groups.get(index) ?? []).map(otherPage) }));
  return [...named, ...others].filter(({ pages }) => pages.length > 0);
}

function pageOf({ path, title, source, headings }: Wanted, byPath: ReadonlyMap<string, Source>): SitePage {
  const found = byPath.get(source);
  if (found === undefined) throw new Error(`site/build/catalog.ts names ${source}, which is not there`);
  if (headings === undefined) return { path, title, source, text: found.text };
  const parts = partsOf(found.text);
  const elsewhere = SECTIONS.flatMap(([, pages]) =>
    pages.flatMap((one) => (one.source !== source || one.path === path ? [] : (one.headings ?? []))),
  );
  const wanted = headings === "the rest" ? parts.map(({ heading }) => heading).filter((one) => !elsewhere.includes(one)) : headings;
  const texts = wanted.map((heading) => {
    const part = parts.find((one) => one.heading === heading);
    if (part === undefined) throw new Error(`${source} has no heading ${JSON.stringify(heading)}: site/build/catalog.ts names it`);
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
