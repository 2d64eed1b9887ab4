import { posix } from "node:path";

/** Elements' ids and links of one HTML file. */
interface Linked {
  readonly ids: ReadonlySet<string>;
  readonly links: readonly string[];
}

function linkedOf(html: string): Linked {
  const body = html.replace(/<script\b[\s\S]*?<\/script>/g, "");
  const values = (attribute: RegExp): string[] => [...body.matchAll(attribute)].map(([, value = ""]) => value.replaceAll("&amp;", "&"));
  return { ids: new Set(values(/\sid="([^"]*)"/g)), links: values(/\s(?:href|src)="([^"]*)"/g) };
}

/**
 * Find links that lead nowhere: to a file that the site has not, or to a place that a page has not. Pure.
 * @param files the site's files by path, text only of HTML files
 * @returns a line each: page, link, what is wrong with it
 */
export function deadLinks(files: ReadonlyMap<string, string>): readonly string[] {
  const pages = new Map([...files].filter(([path]) => path.endsWith(".html")).map(([path, html]) => [path, linkedOf(html)]));
  return [...pages].flatMap(([path, { links }]) =>
    links.flatMap((link) => {
      const problem = problemOf(path, link, files, pages);
      return problem === undefined ? [] : [`${path}: ${link}: ${problem}`];
    }),
  );
}

function problemOf(path: string, link: string, files: ReadonlyMap<string, string>, pages: ReadonlyMap<string, Linked>): string | undefined {
  // Others' sites are theirs; mail and data lead to no page.
  if (/^(?:https?|mailto|data):/.test(link)) return undefined;
  if (link.startsWith("/")) return "begins with /: it works in the site's root alone";
  const [address = "", fragment] = link.split("#");
  const [file = ""] = address.split("?");
  const target = file === "" ? path : posix.normalize(posix.join(posix.dirname(path), decodeURIComponent(file)));
  if (!files.has(target)) return `there is no ${target}`;
  if (fragment === undefined || fragment === "") return undefined;
  return pages.get(target)?.ids.has(decodeURIComponent(fragment)) === true ? undefined : `${target} has no #${fragment}`;
}
