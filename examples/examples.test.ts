import { spawn } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPackedProject, ENV, ROOT, type PackedProject } from "@turnout/house/packed-project";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const service = (name: string, ip: string): string => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { type: NodePort, clusterIP: ${ip}, ports: [{ name: http, port: 80, nodePort: 300${ip.slice(-2)} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.1.1.5] }, { addresses: [10.1.2.5] }]
---`;
const SHOP = service("cart", "10.96.0.20");
const SHOPS = SHOP + service("till", "10.96.0.21");

describe("the examples, copied into an empty directory, with packages installed from their tarballs", () => {
  let project: PackedProject;
  const path = (...names: readonly string[]): string => join(project.directory, ...names);
  const turnout = (...args: readonly string[]): ReturnType<PackedProject["run"]> => project.run(path("node_modules/.bin/turnout"), args);
  const contents = (file: string): Promise<string> => readFile(path(file), "utf8").catch(() => "");
  beforeAll(async () => {
    project = await createPackedProject(async (directory) => {
      await cp(join(ROOT, "examples/custom-backend"), directory, { recursive: true, filter: (name) => !/node_modules|dist/.test(name) });
      await cp(join(ROOT, "examples/shell-backend"), join(directory, "shell"), { recursive: true });
      await cp(join(ROOT, "examples/print-state"), directory, { recursive: true });
    });
    await project.run("npm", ["run", "build"]);
  }, 240_000);
  afterAll(() => project.remove());

  describe("custom-backend", () => {
    it("keeps a table in step with a file, adopts it, and cleans up", async () => {
      await mkdir(path("state"));
      await writeFile(path("shop.yaml"), SHOPS);
      const sync = ["--backend", "turnout-backend-table", "--backend-option", `directory=${path("state")}`];
      const once = ["run", ...sync, "--source", "file:shop.yaml", "--once"];
      await turnout(...once);
      const table = JSON.parse(await contents("state/IPv4.json")) as Record<string, { rules: readonly { to: unknown }[] }>;
      expect(table["route TCP 10.96.0.21:80"]?.rules.at(-1)?.to).toEqual(["10.1.1.5:8080", "10.1.2.5:8080"]);
      await writeFile(path("shop.yaml"), SHOP);
      expect((await turnout(...once, "--dry-run")).stdout).toMatch(/^remove route TCP \*:30021\nremove route TCP 10\.96\.0\.21:80$/m);
      await turnout(...once);
      expect(Object.keys(JSON.parse(await contents("state/IPv4.json")) as object)).toEqual([
        "host self",
        "route TCP *:30020",
        "route TCP 10.96.0.20:80",
      ]);
      await turnout("cleanup", ...sync);
      expect(await contents("state/IPv4.json")).toBe("");
    }, 60_000);
  });

  describe("shell-backend", needs("jq"), () => {
    it("follows a file", async () => {
      await writeFile(path("shop.yaml"), SHOP);
      const pipe = "exec node_modules/.bin/turnout print --watch -o jsonl --source file:shop.yaml | sh shell/endpoints.sh lines";
      const child = spawn("sh", ["-c", pipe], { cwd: project.directory, env: ENV, detached: true, stdio: ["ignore", "ignore", "inherit"] });
      const comesToSay = async (...lines: readonly string[]): Promise<void> => {
        await expect.poll(() => contents("lines/IPv4.txt"), { timeout: 20_000 }).toBe(lines.map((line) => `${line}\n`).join(""));
      };
      const servers = "10.1.1.5:8080 10.1.2.5:8080";
      const [cart, cartPort] = ["  (shop/cart:http/TCP)", "*:30020/TCP → "];
      try {
        await comesToSay(`${cartPort}${servers}${cart}`, `10.96.0.20:80/TCP → ${servers}${cart}`);
        await writeFile(path("shop.yaml"), SHOPS);
        const till = "  (shop/till:http/TCP)";
        await comesToSay(
          `${cartPort}${servers}${cart}`,
          `*:30021/TCP → ${servers}${till}`,
          `10.96.0.20:80/TCP → ${servers}${cart}`,
          `10.96.0.21:80/TCP → ${servers}${till}`,
        );
        await writeFile(path("shop.yaml"), SHOP.replace(/^endpoints: .*$/m, "endpoints: []"));
        await comesToSay(`${cartPort}reject${cart}`, `10.96.0.20:80/TCP → reject${cart}`);
        expect(await contents("lines/IPv6.txt")).toBe("");
      } finally {
        process.kill(-(child.pid ?? 0), "SIGTERM");
      }
    }, 90_000);
  });

  describe("print-state", () => {
    it("follows a brain in another process, and the change that comes", async () => {
      await writeFile(path("shop.yaml"), SHOP);
      const target = `unix://${path("node.sock")}`;
      const script = `node_modules/.bin/turnout serve --source file:shop.yaml --listen ${target} 2>serve.log & exec node print-state.ts ${target} node1 > printed`;
      const child = spawn("sh", ["-c", script], {
        cwd: project.directory,
        env: ENV,
        detached: true,
        stdio: ["ignore", "ignore", "inherit"],
      });
      const comesToSay = async (text: string): Promise<void> => {
        await expect.poll(() => contents("printed"), { timeout: 20_000 }).toContain(text);
      };
      try {
        await comesToSay("10.96.0.20:80/TCP        shop/cart:http/TCP               → 10.1.1.5:8080 10.1.2.5:8080\n");
        await writeFile(path("shop.yaml"), SHOPS);
        await comesToSay("# revision 2\n");
        await comesToSay("shop/till:http/TCP");
      } finally {
        process.kill(-(child.pid ?? 0), "SIGTERM");
      }
    }, 60_000);
  });

  it("backends come with programs of their own", async () => {
    const { stdout } = await project.run(path("node_modules/.bin/turnout-nft"), ["--help"]);
    expect(stdout).toMatch(/^Usage: turnout-nft \[options\]\n/);
  });
});
