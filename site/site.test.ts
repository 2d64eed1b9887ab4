import { globSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CHROMIUM, needs } from "@turnout/house/needs";
import { launch, type Browser, type Page } from "puppeteer-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeSite, type Site } from "./build/site.ts";
import { fragmentOf } from "./playground/link.ts";
import { FIRST_STATE } from "./playground/state.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Pictures of pages are put into this folder, for people. */
const PICTURES = process.env["TURNOUT_PICTURES"];
const PAGES = ["index.html", "quick-start.html", "rules.html", "benchmarks.html", "playground.html", "backends/nft.html"];
const TYPES: Readonly<Record<string, string>> = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" };

/** Of texts of each sort, the contrast to the ground that they stand on, by WCAG's formula. */
const CONTRASTS = `(() => {
  const luminance = (color) => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => Number(part) / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" ? groundOf(element.parentElement) : color;
  };
  return [...document.querySelectorAll("h1, main p, main a, .side a, code, th, td, summary, .quiet, .good, .chips i, .picture em, .door, label, button, input, .verdict")].map((element) => {
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(groundOf(element))];
    return { text: element.tagName + " " + element.className + " " + element.textContent.slice(0, 40), contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) };
  });
})()`;

/** The shop of the first example with more endpoints than any shop has. */
function manyEndpoints(count: number): string {
  const [service = "", , ...nodes] = FIRST_STATE.manifests.split("---\n");
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    metadata: { name: "cart-1", namespace: "shop", labels: { "kubernetes.io/service-name": "cart" } },
    endpoints: Array.from({ length: count }, (_, index) => ({ addresses: [`10.2.${index >> 8}.${index % 256}`], nodeName: "node1" })),
  };
  return [service, `${JSON.stringify(slice)}\n`, ...nodes].join("---\n");
}

let site: Site;

beforeAll(async () => {
  site = await makeSite(ROOT);
}, 120_000);

it("no link of the site, and none of the repository's pages, leads nowhere", () => {
  expect(site.complaints).toEqual([]);
  expect(site.files.size).toBeGreaterThan(80);
});

it("nothing of Node is left in the playground, and the whole is small enough to be sent", () => {
  const script = String(site.files.get("playground.js"));
  expect(script).not.toMatch(/\brequire\(|from ?["'`]node:|import\(["'`]/);
  expect(script.length).toBeLessThan(1_500_000);
});

describe("the site in a real browser", needs("chromium", "bpf"), () => {
  let folder: string;
  let server: Server;
  let http = "";
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "turnout-site-"));
    for (const [path, content] of site.files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    // Below a path, as pages of a project are served.
    server = createServer((request, response) => {
      const path = decodeURIComponent((request.url ?? "").split(/[?#]/)[0] ?? "").replace("/some/where/", "");
      const content = site.files.get(path);
      if (content === undefined) return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": TYPES[path.split(".").at(-1) ?? ""] ?? "application/octet-stream" }).end(content);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    http = `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/where/`;
    // As root the browser's own sandbox refuses to run; what it is shown is ours.
    browser = await launch({
      executablePath: CHROMIUM,
      headless: "shell",
      args: ["--no-sandbox", "--disable-gpu"],
      protocolTimeout: 240_000,
    });
  }, 240_000);
  afterAll(async () => {
    await browser?.close();
    server?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    complaints.length = 0;
    asked.length = 0;
    page = await browser.newPage();
    page.setDefaultTimeout(100_000);
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("request", (request) => asked.push(request.url()));
    await page.setViewport({ width: 1280, height: 900 });
  });
  afterEach(async () => {
    await page.close();
  });

  const onDisk = (path: string): string => pathToFileURL(join(folder, path)).href;
  // What runs in the page is text: it is another program.
  const inPage = (script: string): Promise<unknown> => page.evaluate(script);
  const shows = async (selector: string, text: string): Promise<void> =>
    void (await page.waitForFunction(
      `document.querySelector(${JSON.stringify(selector)})?.textContent?.includes(${JSON.stringify(text)})`,
    ));
  const enter = async (selector: string, text: string): Promise<void> => {
    await inPage(`document.querySelector(${JSON.stringify(selector)}).value = ""`);
    await page.type(selector, text);
  };
  /** As pasting does: at once. */
  const put = async (selector: string, text: string): Promise<void> => {
    const field = `document.querySelector(${JSON.stringify(selector)})`;
    await inPage(`${field}.value = ${JSON.stringify(text)}; ${field}.dispatchEvent(new Event("input", { bubbles: true }))`);
  };
  const picture = async (name: string): Promise<void> => {
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  };

  it.each(PAGES)("%s can be read in light and dark, and on a phone without scrolling sideways", async (path) => {
    await page.goto(onDisk(path));
    if (path === "playground.html") await shows("#backends", "winkernel");
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const colors = (await inPage(CONTRASTS)) as readonly { readonly text: string; readonly contrast: number }[];
      expect(colors.length).toBeGreaterThan(20);
      // WCAG's level AA for text of this size.
      expect(colors.filter(({ contrast }) => contrast < 4.5)).toEqual([]);
      for (const width of [1280, 360]) {
        await page.setViewport({ width, height: 900 });
        expect(await inPage("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
        // All pages are beside the page, or below it and one click away.
        expect(await inPage("getComputedStyle(document.querySelector('.top .narrow')).display === 'none'")).toBe(width === 1280);
        await picture(`${path.replaceAll("/", "-")}-${width}-${scheme}`);
      }
    }
    expect(complaints).toEqual([]);
    // From a disk it asks for nothing else: it works offline.
    expect(asked.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
  });

  it("begins the benchmarks with their plots, at a glance", async () => {
    await page.goto(onDisk("benchmarks.html"));
    const top = (await inPage("document.querySelector('.plot').getBoundingClientRect().top")) as number;
    expect(top).toBeLessThan(600);
    expect(await inPage("document.querySelectorAll('.plot img').length")).toBe(globSync("docs/plots/*.svg", { cwd: ROOT }).length);
    expect(
      await inPage(
        "[...document.querySelectorAll('.plot')].at(-1).getBoundingClientRect().bottom < document.querySelector('table').getBoundingClientRect().top",
      ),
    ).toBe(true);
    if (PICTURES !== undefined) {
      // A picture of the whole page has but those that were seen.
      await inPage("document.querySelectorAll('.plot img').forEach((image) => { image.loading = 'eager'; })");
      await page.waitForNetworkIdle();
      const height = (await inPage("document.querySelector('#how-to-run-it').getBoundingClientRect().top")) as number;
      await page.screenshot({
        path: join(PICTURES, "benchmarks-glance.png"),
        clip: { x: 0, y: 0, width: 1280, height },
        captureBeyondViewport: true,
      });
    }
    expect(complaints).toEqual([]);
  });

  it("leads from page to page below a path, and to the place that was meant", async () => {
    await page.goto(`${http}index.html`);
    await page.click(".doors .first");
    await shows("h1", "Quick start");
    await page.goto(`${http}backends/nft.html`);
    await page.click('.side a[href$="rules.html"]');
    await shows("h1", "The rulebook");
    await page.goto(`${http}playground.html`);
    await shows("#steps", "R-30");
    await page.click("#steps .rule");
    await page.waitForFunction("document.querySelector('.rule-item:target')?.id === 'r-30'");
    await shows(".rule-item:target", "✓ nft");
    await shows(".rule-item:target details", "– userspace");
    await page.click(".rule-item:target .rule-status > a");
    await page.waitForFunction("document.querySelector('#scenario')?.selectedOptions[0]?.textContent.includes('R-30')");
    await shows("#verdict", "The packet");
    expect(asked.filter((url) => !url.startsWith(http) && !url.startsWith("data:"))).toEqual([]);
  });

  describe("the playground", () => {
    it("says what becomes of a packet that was typed, by each backend's own rules", async () => {
      await page.goto(onDisk("playground.html"));
      await shows("#backends", "winkernel");
      await inPage("document.querySelector('#manifests').value = ''");
      await page.type(
        "#manifests",
        "apiVersion: v1\nkind: Service\nmetadata: { name: tea, namespace: shop }\nspec: { clusterIP: 10.96.0.7, ports: [{ port: 81 }] }\n",
      );
      await enter("#from", "10.1.1.2");
      await enter("#to", "10.96.0.7:81");
      await shows("#verdict", "The packet is refused.");
      await shows("#steps", "10.96.0.7:81/TCP is the cluster IP of Service shop/tea");
      await shows("#answer .cause", "[no_endpoints]");
      await shows("#problems", "there is no Node node1");
      await shows("#rows", "cluster 10.96.0.7:81");
      await shows("#backends tbody tr:nth-child(2)", "refused");
      await page.waitForFunction("document.querySelectorAll('#backends .good').length === 5");
      await enter("#to", "somewhere");
      await shows("#verdict", "no address and port");
      expect(complaints).toEqual([]);
    });

    it("takes away what it showed when it can't answer, and says why", async () => {
      const everything =
        "document.querySelector('#answer').parentElement.textContent + document.querySelector('#rules').parentElement.textContent";
      await page.goto(onDisk("playground.html"));
      await shows("#rules-winkernel", "10.1.1.2");
      // What is shown is marked as of another question as soon as something is typed.
      await put("#manifests", manyEndpoints(10_001));
      expect(
        await inPage("document.querySelectorAll('#answer[aria-busy], #backends[aria-busy], #rows[aria-busy], #rules [aria-busy]').length"),
      ).toBe(8);
      await shows("#verdict", "These are 1 row with 10,001 endpoints");
      expect(await inPage(everything)).not.toContain("10.1.1.2");
      await shows("#rules-nft", "Nothing is shown here: the reason stands above.");
      expect(await inPage("document.querySelectorAll('[aria-busy]').length")).toBe(0);
      await put("#manifests", `# ${"x".repeat(500_000)}\na: b\n`);
      await shows("#verdict", "characters of YAML");
      await put("#manifests", FIRST_STATE.manifests);
      await shows("#verdict", "The packet goes to 10.1.1.2:8080.");
      await shows("#rules-winkernel", "10.1.1.2");
      expect(complaints).toEqual([]);
    });

    it("shows no answer to what was typed over while it was worked out", async () => {
      await page.goto(onDisk("playground.html"));
      await shows("#backends", "winkernel");
      // The second question comes when the first one's backend has just begun.
      await inPage(`(() => {
        const type = (id, text) => { const field = document.getElementById(id); field.value = text; field.dispatchEvent(new Event("input", { bubbles: true })); };
        const answer = document.getElementById("answer");
        seen = [];
        new MutationObserver(() => answer.hasAttribute("aria-busy") || seen.push(answer.textContent)).observe(answer, { attributes: true, childList: true });
        type("from", "10.1.1.3");
        document.getElementById("question").requestSubmit();
        setTimeout(() => type("from", "10.1.1.4"), 0);
      })()`);
      await shows("#steps", "10.1.1.4");
      expect(await inPage("seen.filter((text) => text.includes('10.1.1.3'))")).toEqual([]);
      expect(complaints).toEqual([]);
    });

    it("shows the beginning of long texts, and says what prints all", async () => {
      await page.goto(onDisk("playground.html"));
      await put("#manifests", manyEndpoints(2_000));
      await shows("#rules-nft", "more lines, which turnout render prints");
      expect(await inPage("document.querySelectorAll('#rules-nft pre').length")).toBe(3);
      expect(
        await inPage("Math.max(...[...document.querySelectorAll('#rules pre')].map((pre) => pre.textContent.split('\\n').length))"),
      ).toBe(1_000);
      expect(complaints).toEqual([]);
    });

    it("says at a field what is wrong there and what to write, and gives no other answer", async () => {
      await page.goto(onDisk("playground.html"));
      await shows("#backends", "winkernel");
      for (const [field, wrong, says, name] of [
        ["#pods", "10.1.0.0/99", '"10.1.0.0/99" is no range of addresses: write CIDRs', "Pods are in"],
        ["#addresses", "foo", '"foo" is no address: write IP addresses', "More addresses of the node"],
        ["#node-port-addresses", "foo", '"foo" is no range of addresses: write primary, localhost, all, or CIDRs', "Node ports answer on"],
      ] as const) {
        const before = (await inPage(`document.querySelector("${field}").value`)) as string;
        await put(field, wrong);
        await shows(`${field}-problem`, says);
        await shows("#verdict", `There is no answer: the field "${name}" is wrong`);
        // Seen, where the field is in what was folded.
        expect(await inPage(`document.querySelector("${field}-problem").checkVisibility()`)).toBe(true);
        expect(await inPage("document.querySelector('#backends').textContent")).toBe("Nothing is shown here: the reason stands above.");
        await picture(`playground-wrong${field}`);
        await put(field, before);
        await shows("#verdict", "The packet goes to");
        expect(await inPage("[...document.querySelectorAll('.field-problem')].every(({ hidden }) => hidden)")).toBe(true);
      }
      expect(complaints).toEqual([]);
    });

    it("shows each backend's rules, and the packet's way through them", async () => {
      await page.goto(onDisk("playground.html"));
      await shows("#rules-nft", "dnat ip to");
      await shows("#rules-nft", "# IPv4: the plan for an empty host");
      await shows("#rules-iptables", "KUBE-SVC-");
      await page.select("#backend", "userspace");
      await shows("#verdict", "(sees the node)");
      expect(complaints).toEqual([]);
    });

    it("opens a link with all that somebody entered, and makes one", async () => {
      const manifests = FIRST_STATE.manifests.replace("externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster");
      await page.goto(
        `${onDisk("playground.html")}${await fragmentOf({ ...FIRST_STATE, manifests, backend: "ipvs", masqueradeAll: true })}`,
      );
      await shows("#verdict", "The packet goes to 10.1.1.2:8080 (sees the node) or 10.1.2.2:8080 (sees the node).");
      expect(await inPage("[document.querySelector('#backend').value, document.querySelector('#masquerade-all').checked]")).toEqual([
        "ipvs",
        true,
      ]);
      await enter("#from", "10.1.1.9");
      await page.click("#share");
      await shows("#share-text", "The link is");
      const made = (await inPage("location.href")) as string;
      await page.goto("about:blank");
      await page.goto(made);
      await shows("#steps", "10.1.1.9");
      await page.goto(`${onDisk("playground.html")}#1=broken`);
      await shows("#share-text", "This link can't be read");
      await shows("#verdict", "The packet goes to");
      expect(complaints).toEqual([]);
    });

    it("makes no link of what is too long for one", async () => {
      await page.goto(onDisk("playground.html"));
      const before = await inPage("location.href");
      // Numbers without an order can't be packed.
      await inPage("document.querySelector('#manifests').value = '# ' + Array.from({ length: 5_000 }, () => Math.random()).join(' ')");
      await page.click("#share");
      await shows("#share-text", "No link was made: it would be longer than 32,000 characters");
      expect(await inPage("location.href")).toBe(before);
      expect(complaints).toEqual([]);
    });

    it("sends nothing to anybody, whatever its scripts try", async () => {
      await page.goto(`${http}playground.html`);
      const tried = await inPage("fetch(location.href).then(() => 'sent', (error) => error.name)");
      expect(tried).toBe("TypeError");
      expect(complaints.join()).toContain("connect-src 'none'");
    });

    it("takes what is in a link for text, whatever that is", async () => {
      const hostile = "<img src=x onerror=document.title='owned'>";
      const manifests = `${FIRST_STATE.manifests}---\napiVersion: v1\nkind: Service\nmetadata: { name: x, namespace: shop }\nspec: { clusterIP: 10.96.0.9, externalIPs: ["${hostile}"], ports: [{ port: 1 }] }\n`;
      await page.goto(`${onDisk("playground.html")}${await fragmentOf({ ...FIRST_STATE, manifests, node: hostile, to: hostile })}`);
      await shows("#problems", hostile);
      expect(await page.title()).not.toBe("owned");
      expect(await inPage("document.querySelectorAll('main img').length")).toBe(0);
    });

    it("goes through the scenarios of the kit with nothing but the keyboard", async () => {
      await page.goto(onDisk("playground.html"));
      await shows("#backends", "winkernel");
      await page.focus("#scenario");
      const chosen = (): Promise<unknown> =>
        inPage("document.querySelector('#scenario').selectedOptions[0].textContent.startsWith('R-28 R-29')");
      for (let tries = 0; !(await chosen()); tries += 1) {
        expect(tries).toBeLessThan(20);
        // A list forgets after a second what was typed; on a busy machine that is while the next key comes.
        await sleep(1_100);
        await page.keyboard.type("R-28 R-29");
      }
      await page.keyboard.press("Enter");
      await shows("#probes", "client1 → web nodePort@node1: pod-1-1 pod-2-1 saw node1");
      await shows("#verdict", "10.1.2.1:8080 (sees the node)");
      for (let steps = 0; (await inPage("document.activeElement.id")) !== "next-step"; steps += 1) {
        expect(steps).toBeLessThan(5);
        await page.keyboard.press("Tab");
      }
      for (const verdict of ["The packet goes to 10.1.2.1:8080", "The packet goes to 10.1.1.1:8080", "The packet is refused"]) {
        await page.keyboard.press("Enter");
        await shows("#verdict", verdict);
      }
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await shows("#steps", "R-");
      expect(await inPage("document.querySelector('#to').value")).toMatch(/^\d/);
      expect(complaints).toEqual([]);
    });
  });
});
