import { posix } from "node:path";
import type { Section } from "./catalog.ts";
import { escape } from "./markdown.ts";
import type { Heading } from "./markdown.ts";

/** What stands in the middle of a page. */
export interface PageContent {
  /** Of the HTML file, relative to the site's folder. */
  readonly path: string;
  readonly title: string;
  readonly html: string;
  /** Second-level headings are listed beside the page. */
  readonly headings: readonly Heading[];
  /** Scripts, relative to the site's folder. */
  readonly scripts?: readonly string[];
}

/** Pages that are made, not read. */
export const MADE: Readonly<Record<"start" | "playground", string>> = { start: "index.html", playground: "playground.html" };

/** Give the way from one page to another file of the site. Pure. */
export function wayFrom(path: string, target: string): string {
  return posix.relative(posix.dirname(path), target) || posix.basename(target);
}

/** Put content into a whole page. Every address in it is relative, so the site works in any folder, and from a disk. Pure. */
export function pageHtml(content: PageContent, sections: readonly Section[]): string {
  const { path, title, html, headings, scripts = [] } = content;
  const way = (target: string): string => escape(wayFrom(path, target));
  const isStart = path === MADE.start;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta http-equiv="Content-Security-Policy" content="connect-src 'none'; form-action 'none'; object-src 'none'; base-uri 'none'" />
    <title>${isStart ? "Turnout: a pluggable kube-proxy" : `${escape(title)} · Turnout`}</title>
    <link rel="stylesheet" href="${way("style.css")}" />
    <link rel="icon" href="data:," />
    ${scripts.map((script) => `<script src="${way(script)}" defer></script>`).join("\n    ")}
  </head>
  <body>
    <a class="skip" href="#content">Skip to the content</a>
    <header class="top">
      <a class="name" href="${way(MADE.start)}">Turnout</a>
      <nav aria-label="Main">
        <a href="${way("quick-start.html")}">Quick start</a>
        <a href="${way(MADE.playground)}">Playground</a>
        <a href="${way("operations.html")}">Operate</a>
        <a href="${way("write-a-backend.html")}">Write a backend</a>
        <a class="narrow" href="#pages">All pages</a>
      </nav>
    </header>
    <div class="columns">
      <nav class="side" aria-label="All pages">
        <h2 class="hidden" id="pages">All pages</h2>
        ${sections.map((section) => sectionHtml(section, path)).join("\n        ")}
      </nav>
      <main id="content"${path === MADE.playground ? ' class="broad"' : ""}>
${html}
      </main>
${contentsHtml(headings)}
    </div>
    <footer>Apache-2.0. Made from the repository's own pages by <code>npm run site</code>.</footer>
  </body>
</html>
`;
}

/** Long lists begin closed, but for the one that the page is in. */
const SHORT = 8;

function sectionHtml({ title, pages }: Section, path: string): string {
  const isHere = pages.some((page) => page.path === path);
  const items = pages.map((page) => {
    const current = page.path === path ? ' aria-current="page"' : "";
    return `<li><a href="${escape(wayFrom(path, page.path))}"${current}>${escape(page.title)}</a></li>`;
  });
  return `<details class="section"${isHere || pages.length <= SHORT ? " open" : ""}><summary>${escape(title)}</summary><ul>${items.join("")}</ul></details>`;
}

function contentsHtml(headings: readonly Heading[]): string {
  const second = headings.filter(({ depth }) => depth === 2);
  if (second.length < 3) return "";
  const items = second.map(({ id, html }) => `<li><a href="#${escape(id)}">${html.replace(/<\/?a\b[^>]*>/g, "")}</a></li>`);
  return `      <nav class="contents" aria-label="On this page"><p>On this page</p><ul>${items.join("")}</ul></nav>`;
}
