import { describe, expect, it } from "vitest";
import { parseNews } from "./news.ts";

describe("parseNews", () => {
  const notFound =
    "modprobe: WARNING: Module ip_vs_twos not found in directory /x modprobe: ERROR: could not insert 'dummy': Exec format error";
  const rows = [
    { line: "started", news: { kind: "started" } },
    { line: "broken", news: { kind: "broken" } },
    { line: "exit 0", news: { kind: "exit", code: 0 } },
    { line: "exit 137", news: { kind: "exit", code: 137 } },
    { line: `unloaded ${notFound}`, news: { kind: "unloaded", modules: ["ip_vs_twos", "dummy"], reason: notFound } },
    { line: "exit now", news: { kind: "report", line: "exit now" } },
    { line: '{"name":"exit 0"}', news: { kind: "report", line: '{"name":"exit 0"}' } },
    { line: "", news: { kind: "report", line: "" } },
  ];
  it.each(rows)("reads $line", ({ line, news }) => {
    expect(parseNews(line)).toEqual(news);
  });
});
