import { wallMs } from "@turnout/core";
import { readFile } from "node:fs/promises";
import { refusal } from "./host-only.ts";
import { jsonReply, type HttpRequest, type Reply } from "../health/health.ts";
import type { InsightOptions, InsightRoute } from "./insight-route.ts";
import type { ProxyView } from "./proxy-view.ts";
import type { RowCounts } from "./service-counts.ts";
import { listRows } from "./service-list.ts";

/** In the package, beside `src` and `dist`. */
const FOLDER = new URL("../../../web/", import.meta.url);

const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/turnout/": ["index.html", "text/html"],
  "/turnout/page.css": ["page.css", "text/css"],
  "/turnout/page.js": ["page.js", "text/javascript"],
};

/** Nothing but the files beside it, and answers of the same server; nobody may frame it. */
const HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
};

/** The page for people: its files, and what it asks for besides what `turnout` asks for. */
export const PAGE_ROUTES: Readonly<Record<string, InsightRoute>> = {
  ...Object.fromEntries(Object.entries(FILES).map(([path, [file, type]]) => [path, () => fileReply(file, type)] as const)),
  "/turnout": () => ({ status: 308, headers: { Location: "/turnout/" }, body: "" }),
  "/turnout/services": async ({ query }: HttpRequest, { families }: ProxyView, { signal }: InsightOptions): Promise<Reply> => {
    const counted = await Promise.all(
      families.map(async (view) => [view.family, (await view.counted(signal))?.busiest ?? ([] as readonly RowCounts[])] as const),
    );
    return jsonReply(200, listRows(families, { search: query.get("q") ?? "", after: query.get("after") ?? "" }, new Map(counted)));
  },
  "/turnout/changes": ({ query }: HttpRequest, { changes, clock }: ProxyView): Reply => {
    const since = Number(query.get("since") ?? 0);
    const after = changes.since(Number.isSafeInteger(since) ? since : 0);
    return jsonReply(200, { newest: changes.newest, changes: after.map((change) => ({ ...change, atMs: wallMs(clock, change.atMs) })) });
  },
};

/** Read anew each time: they are small, and seldom asked for. An image may have been made without them. */
async function fileReply(file: string, type: string): Promise<Reply> {
  try {
    const body = await readFile(new URL(file, FOLDER), "utf8");
    return { status: 200, headers: { ...HEADERS, "Content-Type": `${type}; charset=utf-8` }, body };
  } catch (error) {
    return refusal(404, `the files of the page are not in this installation: ${String(error)}`);
  }
}
