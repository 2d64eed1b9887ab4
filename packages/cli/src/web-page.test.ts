import { join } from "node:path";
import { CHROMIUM, needs } from "@turnout/house/needs";
import { launch, type Browser, type Page } from "puppeteer-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort, TOY_BACKEND, ToyEnvironment, type Outcome } from "./test-support/toy-environment.ts";

const SERVICES = 10_000;
/** What a browser would run if the page took text for HTML. */
const HOSTILE = "<img src=x onerror=document.title='owned'>";
/** Pictures of the page are put into this folder, for people. */
const PICTURES = process.env["TURNOUT_PICTURES"];

function sliceOf(service: number, name: string, ...addresses: readonly string[]): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": `svc-${service}` } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address], nodeName: "node2" })),
  };
}

/** Of texts of each sort: the ground they stand on, and their contrast to it, by WCAG's formula. */
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
  return ["body", "#health", "#about", "th", "summary", "summary .quiet", "summary .bad", ".trouble", "nav a", "#search", "#more"].map((selector) => {
    const element = document.querySelector(selector);
    const ground = groundOf(element);
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(ground)];
    return { selector, ground, contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) };
  });
})()`;

function objects(services: number): readonly object[] {
  const service = (n: number): object => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `svc-${n}`, namespace: "shop" },
    spec: { clusterIP: `10.96.${n >> 8}.${n & 255}`, ports: [{ name: "http", port: 80 }], ...(n === 7 ? { externalIPs: [HOSTILE] } : {}) },
  });
  return Array.from({ length: services }, (_, n) => [
    service(n),
    sliceOf(n, `svc-${n}-1`, ...(n === 9 ? [] : [`10.1.${n >> 8}.${n & 255}`])),
  ]).flat();
}

describe("the web page in a real browser", needs("chromium"), () => {
  let proxy: ToyEnvironment;
  let running: Promise<Outcome>;
  let browser: Browser;
  let page: Page;
  let url = "";
  const complaints: string[] = [];

  beforeAll(async () => {
    proxy = await ToyEnvironment.create();
    await proxy.file("all.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: objects(SERVICES) }));
    const port = await freePort();
    url = `http://127.0.0.1:${port}/turnout/`;
    const backend = await proxy.file("toy.mjs", TOY_BACKEND);
    const common = ["--node-name", "node1", "--healthz-bind-address", "", "--metrics-bind-address", `127.0.0.1:${port}`, "--web-page"];
    running = proxy.run("run", "--source", `file:${proxy.directory}`, "--backend", backend, ...common);
    // As root the browser's own sandbox refuses to run; what it is shown is ours.
    browser = await launch({ executablePath: CHROMIUM, headless: "shell", args: ["--no-sandbox", "--disable-gpu"] });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    proxy.stop.abort();
    await running;
    await proxy.remove();
  });
  beforeEach(async () => {
    complaints.length = 0;
    page = await browser.newPage();
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    await page.setViewport({ width: 1200, height: 900 });
    await page.goto(url);
    await shows("#found", `50 of ${SERVICES.toLocaleString("en")} ports`);
    await shows("#health", "node");
  });
  afterEach(async () => {
    await page.close();
  });

  // What runs in the page is text: types of browsers are none of this project's.
  const inPage = (script: string): Promise<unknown> => page.evaluate(script);
  const until = async (script: string): Promise<void> => void (await page.waitForFunction(script));
  const shows = (selector: string, text: string): Promise<void> =>
    until(`document.querySelector(${JSON.stringify(selector)})?.textContent?.includes(${JSON.stringify(text)})`);
  const textOf = (selector: string): Promise<unknown> => inPage(`document.querySelector(${JSON.stringify(selector)}).textContent`);

  test("shows the proxy's state, and of ten thousand Services no more than can be read, found by name, address or endpoint", async () => {
    await shows("#families", "10,000");
    expect(await textOf("h1")).toBe("Turnout on node1");
    expect(await inPage("document.querySelectorAll('*').length")).toBeLessThan(1_000);
    await page.click("#more");
    await shows("#found", "100 of 10,000 ports");
    for (const [search, found] of [
      ["svc-4242", "svc-4242"],
      ["10.96.3.7", "svc-775"],
      ["10.1.4.5:8080", "svc-1029"],
      ["shop svc-9999", "svc-9999"],
    ] as const) {
      await inPage("document.querySelector('#search').value = ''");
      await page.type("#search", search);
      await page.keyboard.press("Enter");
      await shows("#rows li:first-child summary", found);
    }
    await page.type("#search", " nowhere");
    await shows("#found", "nothing is found");
    expect(complaints).toEqual([]);
  });

  test("shows a Service's addresses, rules and endpoints with nothing but the keyboard", async () => {
    await page.keyboard.press("Tab");
    expect(await inPage("document.activeElement.className")).toBe("skip");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await inPage("document.activeElement.id")).toBe("search");
    await page.keyboard.type("svc-9:");
    await shows("#found", "1 of 1 ports");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await shows(".detail", "10.96.0.9:80 (clusterIP): anyone → reject");
    expect(await textOf("summary")).toContain("no endpoint to serve");
    expect(complaints).toEqual([]);
  });

  test("shows changes as they come, and what is wrong as text, whatever that text is", async () => {
    await shows("#problems", HOSTILE);
    await proxy.file("one-more.json", JSON.stringify(sliceOf(1, "svc-1-2", "10.9.9.9")));
    await shows("#change-list", "shop/svc-1:http/TCP: 1 endpoints served, now 2");
    expect(await page.title()).toBe("Turnout on node1");
    expect(complaints).toEqual([]);
  });

  test.each([
    ["10.1.0.1", "10.96.0.10:80", "from=10.1.0.1&to=10.96.0.10%3A80"],
    ["host", "[fd00:96::a]:80", "from=host&to=%5Bfd00%3A96%3A%3Aa%5D%3A80"],
  ])("asks why a packet from %s to %s does not arrive, and shows the answer as the command has it", async (from, to, query) => {
    const asked: string[] = [];
    const answer = `UDP\n\n  1  it comes in [R-22]\n\nculprit: ${HOSTILE}\n  look:  ip route\n`;
    await page.setRequestInterception(true);
    page.on("request", (request) => {
      const isWhy = request.url().includes("/turnout/why");
      if (isWhy) asked.push(request.url().replace(/^.*\?/, ""));
      void (isWhy ? request.respond({ status: 200, contentType: "text/plain", body: answer }) : request.continue());
    });
    await page.type("input[name=from]", from);
    await page.type("input[name=to]", to);
    await page.select("select[name=protocol]", "UDP");
    await page.click("#why-form button");
    await shows("#why-answer", answer);
    expect(complaints).toEqual([]);
    expect(asked).toEqual([`${query}&protocol=UDP&output=text`]);
  });

  test("asks why, and shows an error of the proxy as well", async () => {
    await page.type("input[name=from]", "10.1.0.1");
    await page.type("input[name=to]", "nowhere");
    await page.keyboard.press("Enter");
    await until(`!["", "asking…"].includes(document.querySelector("#why-answer").textContent)`);
    expect(await textOf("#why-answer")).toContain("TO: no address and port: nowhere: write 10.96.0.1:80");
  });

  test("can be read in light and dark", async () => {
    const grounds: string[] = [];
    await page.type("#search", "svc-9:");
    await shows("#rows", "no endpoint to serve");
    await shows("#problems", HOSTILE);
    await page.click("summary");
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const colors = (await inPage(CONTRASTS)) as readonly { readonly ground: string; readonly contrast: number }[];
      // WCAG's level AA for text of this size.
      expect(colors.filter(({ contrast }) => contrast < 4.5)).toEqual([]);
      grounds.push(colors[0]?.ground ?? "");
      if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, `page-${scheme}.png`) });
    }
    expect(new Set(grounds).size).toBe(2);
  });

  test("runs nothing but its own script, and is framed by nobody", async () => {
    const response = await page.goto(url);
    const policy = response?.headers()["content-security-policy"] ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    await inPage("document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = `owned`' }))");
    expect(await page.title()).not.toBe("owned");
  });
});
