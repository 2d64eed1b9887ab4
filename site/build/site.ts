import { existsSync, globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { EXAMPLE_SCENARIOS } from "../playground/examples.ts";
import { bundleForBrowsers } from "./bundle.ts";
import { catalogOf } from "./catalog.ts";
import type { Section, SitePage } from "./catalog.ts";
import { anchorsOf, escape, renderMarkdown } from "./markdown.ts";
import type { ImageSize, LinkMap } from "./markdown.ts";
import { deadLinks } from "./link-check.ts";
import { ruleTotals, withRuleStatus } from "./rule-status.ts";
import type { RuleStatus } from "./rule-status.ts";
import { MADE, pageHtml, wayFrom } from "./shell.ts";
import { readSourcePages } from "./sources.ts";

/** A site that could be written. */
export interface Site {
  /** What is in each file, by its path. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** What is wrong with links, a line each. */
  readonly complaints: readonly string[];
}

const RULES_PAGE = "rules.html";
const SCRIPT = "playground.js";
const IMAGES = "docs/**/*.{svg,png}";

/** Make the site of a repository's documentation. Reads files; writes none. @throws {Error} naming what is missing. */
export async function makeSite(root: string): Promise<Site> {
  const sections = catalogOf(readSourcePages(root));
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const complaints: string[] = [];
  const images = globSync(IMAGES, { cwd: root });
  const places = placesOf(root, sections, images, complaints);
  const status = JSON.parse(read("docs/rule-status.json")) as RuleStatus;
  const navigation: readonly Section[] = sections.map((section, index) => (index === 0 ? withMade(section) : section));
  const files = new Map<string, string | Uint8Array>();
  for (const page of sections.flatMap(({ pages }) => pages)) {
    const { html, headings } = renderMarkdown(page.text, places.linksOf(page));
    const whole =
      page.path === RULES_PAGE ? withRuleStatus(html, status, testedRules()).replace("</h1>", `</h1>\n${totalsHtml(status)}`) : html;
    files.set(page.path, pageHtml({ path: page.path, title: page.title, html: whole, headings }, navigation));
  }
  files.set(MADE.start, pageHtml({ path: MADE.start, title: "Turnout", html: read("site/pages/start.html"), headings: [] }, navigation));
  const playground = `<h1>Playground</h1>\n${read("site/playground/playground.html")}`;
  files.set(
    MADE.playground,
    pageHtml({ path: MADE.playground, title: "Playground", html: playground, headings: [], scripts: [SCRIPT] }, navigation),
  );
  files.set(SCRIPT, await bundleForBrowsers(root, join(root, "site/playground/main.ts")));
  files.set("style.css", read("site/assets/style.css"));
  for (const image of images) files.set(imagePath(image), readFileSync(join(root, image)));
  const texts = new Map([...files].map(([path, content]) => [path, typeof content === "string" ? content : ""]));
  return { files, complaints: [...complaints, ...deadLinks(texts)] };
}

function withMade({ title, pages }: Section): Section {
  const made = { text: "", source: "" };
  return {
    title,
    pages: [{ path: MADE.start, title: "Overview", ...made }, ...pages, { path: MADE.playground, title: "Playground", ...made }],
  };
}

/** Rules of which the playground has an example. */
function testedRules(): ReadonlySet<string> {
  return new Set(EXAMPLE_SCENARIOS.flatMap(({ rules }) => rules));
}

function imagePath(source: string): string {
  return source.replaceAll("\\", "/").replace(/^docs\//, "");
}

/** Read what an SVG document says of its size; undefined: it says nothing, or is none. */
function svgSize(text: string): ImageSize | undefined {
  const [, width, height] = /^<svg [^>]*\bwidth="(\d+)" height="(\d+)"/.exec(text) ?? [];
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) };
}

interface Places {
  linksOf(page: SitePage): LinkMap;
}

/** Know where everything of the repository is on the site. */
function placesOf(root: string, sections: readonly Section[], images: readonly string[], complaints: string[]): Places {
  const pages = sections.flatMap((section) => section.pages);
  const bySource = Map.groupBy(pages, ({ source }) => source);
  const anchors = new Map(pages.map((page) => [page, new Set(anchorsOf(page.text))]));
  const rules = new Set(
    [...(bySource.get("docs/rules.md")?.[0]?.text ?? "").matchAll(/^- \*\*(R-\d+)\*\*/gm)].map(([, rule = ""]) => rule),
  );
  const known = new Set(images.map((image) => image.replaceAll("\\", "/")));
  /** The page of a source that has an anchor; without one, of README.md the start page. */
  const pageOf = (source: string, fragment: string | undefined): string | undefined => {
    const candidates = bySource.get(source) ?? bySource.get(posix.join(source, "README.md")) ?? [];
    const found = fragment === undefined ? undefined : candidates.find((page) => anchors.get(page)?.has(fragment) === true);
    if (found !== undefined) return found.path;
    return source === "README.md" && fragment === undefined ? MADE.start : candidates[0]?.path;
  };
  const sourceOf = (page: SitePage, file: string): string =>
    posix.normalize(posix.join(posix.dirname(page.source), decodeURIComponent(file))).replace(/\/$/, "");
  const hrefOf = (page: SitePage, target: string): string | undefined => {
    if (/^(?:https?|mailto):/.test(target)) return target;
    const [file = "", fragment] = target.split("#");
    const source = file === "" ? page.source : sourceOf(page, file);
    if (known.has(source)) return wayFrom(page.path, imagePath(source));
    const found = source === "docs/adr" ? sections.find(({ title }) => title === "Decisions")?.pages[0]?.path : pageOf(source, fragment);
    if (found !== undefined)
      return `${found === page.path && fragment !== undefined ? "" : wayFrom(page.path, found)}${fragment === undefined ? "" : `#${fragment}`}`;
    if (!existsSync(join(root, source))) complaints.push(`${page.source}: ${target}: there is no ${source}`);
    return undefined;
  };
  return {
    linksOf: (page) => ({
      hrefOf: (target) => hrefOf(page, target),
      imageSize: (target) => {
        const source = sourceOf(page, target);
        return known.has(source) ? svgSize(readFileSync(join(root, source), "utf8")) : undefined;
      },
      ruleHref: (rule) =>
        rules.has(rule) ? `${page.path === RULES_PAGE ? "" : wayFrom(page.path, RULES_PAGE)}#${rule.toLowerCase()}` : undefined,
    }),
  };
}

function totalsHtml(status: RuleStatus): string {
  const rows = ruleTotals(status).map(
    ([backend, passed, failed, leftOut]) =>
      `<tr><td><code>${escape(backend)}</code></td><td>${passed}</td><td>${failed}</td><td>${leftOut}</td></tr>`,
  );
  return `<details class="totals"><summary>How the backends fare: ${escape(
    ruleTotals(status)
      .map(([backend, passed, failed]) => `${backend} ${passed} of ${passed + failed}`)
      .join(", "),
  )}</summary>
<table><thead><tr><th>backend</th><th>passed</th><th>failed</th><th>left out</th></tr></thead><tbody>${rows.join("")}</tbody></table>
<p>What the conformance kit found with packets on hosts in memory (<code>npm run status:update</code>). A rule is left out where a backend can't do what it takes, and says so. Open a – to see why.</p></details>
`;
}
