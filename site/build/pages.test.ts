import { describe, expect, it } from "vitest";
import { catalogOf } from "./catalog.ts";
import { anchorsOf, renderMarkdown } from "./markdown.ts";
import type { LinkMap } from "./markdown.ts";
import { ruleTotals, withRuleStatus } from "./rule-status.ts";
import { wayFrom } from "./shell.ts";
import { readSourcePages } from "./sources.ts";
import { fileURLToPath } from "node:url";

const LINKS: LinkMap = {
  hrefOf: (target) => (target.endsWith(".ts") ? undefined : `to:${target}`),
  ruleHref: (rule) => (rule === "R-22" ? "rules.html#r-22" : undefined),
  imageSize: (target) => (target === "plot.svg" ? { width: 760, height: 318 } : undefined),
};
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe("a page of Markdown", () => {
  it("has anchors as GitHub makes them, also where headings have code or are alike", () => {
    const text = "# `turnout why` & more\n## Be explained\n## Be explained\n";
    expect(anchorsOf(text)).toEqual(["turnout-why--more", "be-explained", "be-explained-1"]);
    const { html, headings } = renderMarkdown(text, LINKS);
    expect(headings.map(({ id }) => id)).toEqual(anchorsOf(text));
    expect(html).toContain('<h2 id="be-explained-1">');
  });

  it("links rules where they are named, but neither in code, nor in links, nor what is no rule", () => {
    const { html } = renderMarkdown("R-22 and R-99, `R-22`, [see R-22](x.md)", LINKS);
    expect(html.match(/class="rule"/g)).toHaveLength(1);
    expect(html).toContain('<a href="to:x.md">see R-22</a>');
    expect(html).toContain("<code>R-22</code>");
  });

  it("takes text for text, and shows links to files that are on no page as text", () => {
    const { html } = renderMarkdown("a < b & [`x.ts`](src/x.ts) <!-- for writers -->\n\n| a<b |\n|---|\n| `c<d` |", LINKS);
    expect(html).toContain("a &lt; b &amp; ");
    expect(html).toContain('<span class="file" title="src/x.ts"><code>x.ts</code></span>');
    expect(html).not.toContain("for writers");
    expect(html).toContain("<code>c&lt;d</code>");
  });

  it("keeps the room of images whose size is known", () => {
    const { html } = renderMarkdown("![a plot](plot.svg) ![a photo](photo.png)", LINKS);
    expect(html).toContain('<img src="to:plot.svg" alt="a plot" width="760" height="318" loading="lazy" />');
    expect(html).toContain('<img src="to:photo.png" alt="a photo" loading="lazy" />');
  });
});

it("the conformance status stands beside each rule, with the reason where it was left out", () => {
  const { html } = renderMarkdown("- **R-22** one\n- **R-51** two\n", LINKS);
  const status = { nft: { "R-22": "passed" }, mine: { "R-22": 'no "drop"' } };
  const whole = withRuleStatus(html, status, new Set(["R-22"]));
  expect(whole).toMatch(/id="r-22"[\s\S]*✓ nft[\s\S]*– mine<\/summary> no &quot;drop&quot;[\s\S]*playground.html\?rule=R-22">try it/);
  expect(whole).toMatch(/id="r-51"[\s\S]*no packet shows it/);
  expect(ruleTotals(status)).toEqual([
    ["nft", 1, 0, 0],
    ["mine", 0, 0, 1],
  ]);
});

it("every page of the repository is on the site, README.md cut into pages", () => {
  const sources = readSourcePages(ROOT);
  const pages = catalogOf(sources).flatMap((section) => section.pages);
  for (const { path } of sources) expect(pages.some(({ source }) => source === path)).toBe(true);
  const readme = sources.find(({ path }) => path === "README.md")?.text ?? "";
  const cut = pages.filter(({ source }) => source === "README.md");
  for (const [, heading = ""] of readme.matchAll(/^## (.+)$/gm))
    expect(cut.filter(({ text }) => text.includes(heading)).length).toBeGreaterThan(0);
  expect(new Set(pages.map(({ path }) => path)).size).toBe(pages.length);
});

it.each([
  ["index.html", "style.css", "style.css"],
  ["adr/1.html", "rules.html", "../rules.html"],
  ["backends/nft.html", "backends/ipvs.html", "ipvs.html"],
  ["rules.html", "rules.html", "rules.html"],
])("the way from %s to %s is %s", (from, to, way) => {
  expect(wayFrom(from, to)).toBe(way);
});
