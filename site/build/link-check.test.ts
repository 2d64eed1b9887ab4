import { expect, it } from "vitest";
import { deadLinks } from "./link-check.ts";

it("finds links to files and places that are not there, from the root, and in any folder", () => {
  const files = new Map([
    [
      "index.html",
      `<h1 id="top">T</h1><a href="a/b.html#here">1</a><a href="#top">2</a><a href="https://example.com/x">3</a><img src="plot.svg">`,
    ],
    [
      "a/b.html",
      `<p id="here"><a href="../index.html#gone">1</a><a href="c.html">2</a><a href="/index.html">3</a><a href="../index.html?x=1#top">4</a></p>`,
    ],
    ["playground.js", `var html = '<a href="nowhere.html">';`],
  ]);
  expect(deadLinks(files)).toEqual([
    "index.html: plot.svg: there is no plot.svg",
    "a/b.html: ../index.html#gone: index.html has no #gone",
    "a/b.html: c.html: there is no a/c.html",
    "a/b.html: /index.html: begins with /: it works in the site's root alone",
  ]);
});
