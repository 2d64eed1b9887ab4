import GithubSlugger from "github-slugger";
import { Marked } from "marked";
import type { Token, Tokens } from "marked";

/** A heading of a page. */
export interface Heading {
  readonly depth: number;
  /** Its anchor, as GitHub makes it. */
  readonly id: string;
  readonly html: string;
}

/** A page as HTML. */
export interface Rendered {
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** What a page's links mean on the site. */
export interface LinkMap {
  /** Where a link leads; undefined: to nothing on the site, so it is shown as text. */
  hrefOf(target: string): string | undefined;
  /** The page with a rule, e.g. `R-22`; undefined: there is no such rule. */
  ruleHref(rule: string): string | undefined;
  /** How large an image is, in pixels; undefined: that is not known. */
  imageSize(target: string): ImageSize | undefined;
}

/** Of an image, in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Anchors of a Markdown page by its headings, in order. Pure. */
export function anchorsOf(text: string): readonly string[] {
  const slugger = new GithubSlugger();
  return new Marked()
    .lexer(text)
    .flatMap((token) => (token.type === "heading" ? [slugger.slug(plainText((token as Tokens.Heading).tokens))] : []));
}

/** Write a page as HTML. Pure. */
export function renderMarkdown(text: string, links: LinkMap): Rendered {
  const slugger = new GithubSlugger();
  const headings: Heading[] = [];
  /** No link within a link. */
  let isInLink = false;
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const id = slugger.slug(plainText(tokens));
        headings.push({ depth, id, html });
        return `<h${depth} id="${escape(id)}">${html} <a class="anchor" href="#${escape(id)}" aria-label="Link to this heading">#</a></h${depth}>\n`;
      },
      link({ href, title, tokens }) {
        isInLink = true;
        const inner = this.parser.parseInline(tokens);
        isInLink = false;
        const target = links.hrefOf(href);
        if (target === undefined) return `<span class="file" title="${escape(href)}">${inner}</span>`;
        return `<a href="${escape(target)}"${title === null || title === undefined ? "" : ` title="${escape(title)}"`}>${inner}</a>`;
      },
      image({ href, text: alternative }) {
        const size = links.imageSize(href);
        // Its room is kept before it is loaded: who follows a link to a place below it stays there.
        const space = size === undefined ? "" : ` width="${size.width}" height="${size.height}"`;
        // On a phone it is scrolled, not shrunk: its text has to be read.
        return `<span class="plot" tabindex="0"><img src="${escape(links.hrefOf(href) ?? href)}" alt="${escape(alternative)}"${space} loading="lazy" /></span>`;
      },
      text(token) {
        if ("tokens" in token && token.tokens !== undefined) return this.parser.parseInline(token.tokens);
        const html = "escaped" in token && token.escaped ? token.text : escape(token.text);
        return isInLink ? html : withRules(html, links);
      },
      listitem(item) {
        const rule = /^\*\*(R-\d+)\*\*/.exec(item.text)?.[1];
        return `<li${rule === undefined ? "" : ` id="${rule.toLowerCase()}" class="rule-item"`}>${this.parser.parse(item.tokens)}</li>\n`;
      },
      table(token) {
        return `<div class="wide" tabindex="0">${tableHtml(token, (tokens) => this.parser.parseInline(tokens))}</div>\n`;
      },
      html({ text: raw }) {
        // Comments are for who writes; other HTML is what a page needs.
        return raw.replace(/<!--[\s\S]*?-->\n?/g, "");
      },
    },
  });
  return { html: marked.parse(text, { async: false }), headings };
}

function tableHtml({ header, align, rows }: Tokens.Table, inline: (tokens: Token[]) => string): string {
  const cell = (name: "td" | "th", tokens: Token[], index: number): string => {
    const aligned = align[index];
    return `<${name}${aligned === null || aligned === undefined ? "" : ` class="${aligned}"`}>${inline(tokens)}</${name}>`;
  };
  const head = header.map(({ tokens }, index) => cell("th", tokens, index)).join("");
  const body = rows.map((row) => `<tr>${row.map(({ tokens }, index) => cell("td", tokens, index)).join("")}</tr>`).join("\n");
  return `<table>\n<thead><tr>${head}</tr></thead>\n<tbody>\n${body}\n</tbody>\n</table>`;
}

function withRules(html: string, links: LinkMap): string {
  return html.replace(/\bR-\d{2}\b/g, (rule) => {
    const href = links.ruleHref(rule);
    return href === undefined ? rule : `<a class="rule" href="${escape(href)}">${rule}</a>`;
  });
}

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) =>
      "tokens" in token && token.tokens !== undefined ? plainText(token.tokens) : "text" in token ? unescape(String(token.text)) : "",
    )
    .join("");
}

function unescape(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&");
}

/** Write text so that it means itself in HTML. Pure. */
export function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}
