import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { pipeline } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { leftOut, needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shopManifests } from "./test-support/shop.ts";
import type { ShopService } from "./test-support/shop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HERE = join(ROOT, "examples/python-consumer");
const INSTALL_MS = 60_000;
const PATIENCE = { timeout: 20_000 };
const run = promisify(execFile);

/** Where Python finds grpcio and grpcio-tools, "" when it has them; or why it can't have them here. */
type Packages = { readonly path: string } | { readonly why: string };

/** Look for the packages, or install them into `directory` within a minute. */
async function findPackages(directory: string): Promise<Packages> {
  const has = await run("python3", ["-c", "import grpc, grpc_tools"]).then(
    () => true,
    () => false,
  );
  if (has) return { path: "" };
  const pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:", "--retries", "1", "--target", directory];
  try {
    await run("python3", [...pip, "-r", join(HERE, "requirements.txt")], { timeout: INSTALL_MS });
    return { path: directory };
  } catch (error) {
    return { why: String(error).trim().split("\n").at(-1) ?? "" };
  }
}

/** A socket at `path` that leads to the node-state server's, and that can be cut. */
class Relay {
  readonly #path: string;
  readonly #stateServer: string;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;

  constructor(path: string, stateServer: string) {
    this.#path = path;
    this.#stateServer = stateServer;
  }

  async open(): Promise<void> {
    this.#server = createServer((near) => {
      this.#open.add(near);
      // A node-state server that is away is what this test is about.
      pipeline(near, connect(this.#stateServer), near, () => this.#open.delete(near));
    });
    this.#server.listen(this.#path);
    await once(this.#server, "listening");
  }

  /** Cut what is connected, and let nobody in. */
  cut(): void {
    this.#server?.close();
    for (const socket of this.#open) socket.destroy();
  }
}

const shop = (...services: readonly ShopService[]): string => services.map(shopManifests).join("---");

const CART = { name: "cart", number: 20, endpoints: ["10.1.1.5", "10.1.2.5"] };
const TILL = { name: "till", number: 21, endpoints: ["10.1.1.6"] };

/** What the consumer prints for a row that is new or changed. */
function printed({ name, number, endpoints }: ShopService): readonly string[] {
  const fate = endpoints.length === 0 ? "TARGET_REJECT" : ["TARGET_CLUSTER", ...endpoints.map((address) => `${address}:8080`)].join(" ");
  return [
    `+ shop/${name}:http PROTOCOL_TCP`,
    `    10.96.0.${number}:80 ORIGIN_ANYONE ${fate}`,
    `    node:300${number} ORIGIN_ANYONE ${endpoints.length === 0 ? "" : "MASQUERADE "}${fate}`,
  ];
}

const directory = await mkdtemp(join(tmpdir(), "turnout-python-"));
const needed = needs("python3");
const packages: Packages = needed.skip ? { why: "no python3" } : await findPackages(join(directory, "packages"));
const runtime = needed.skip || "path" in packages ? needed : leftOut("grpcio", packages.why);
// Hooks don't run where everything is left out.
if (runtime.skip) await rm(directory, { recursive: true, force: true });

describe("a consumer in Python, from the .proto alone", runtime, () => {
  const children: ChildProcess[] = [];
  const file = join(directory, "shop.yaml");
  const relay = new Relay(join(directory, "node.sock"), join(directory, "server.sock"));
  const start = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "ignore"] });
    children.push(child);
    return child;
  };
  const serve = (): ChildProcess =>
    start(join(ROOT, "packages/cli/bin/turnout"), ["serve", "--source", `file:${file}`, "--listen", `unix://${directory}/server.sock`]);
  let stateServer: ChildProcess;
  let output = "";
  /** All that was said of IPv4; the shop has no IPv6. */
  const lines = (): readonly string[] => output.split("\n").filter((line) => line !== "" && !line.includes("IPV6"));

  beforeAll(async () => {
    await relay.open();
    await writeFile(file, shop(CART));
    stateServer = serve();
    const path = "path" in packages ? packages.path : "";
    const args = [join(HERE, "consumer.py"), join(ROOT, "packages/client/proto"), `unix://${directory}/node.sock`, "node1"];
    start("python3", args, path === "" ? {} : { PYTHONPATH: path }).stdout?.on("data", (bytes: Buffer) => {
      output += bytes.toString();
    });
  });
  afterAll(() => {
    relay.cut();
    for (const child of children) child.kill("SIGKILL");
    return rm(directory, { recursive: true, force: true });
  });

  it("prints rows as they change, goes on where it was, and compares what a node-state server that was started again says", async () => {
    const said = ["# FAMILY_IPV4 everything", ...printed(CART)];
    await expect.poll(lines, PATIENCE).toEqual(said);
    await writeFile(file, shop(CART, TILL));
    said.push("# FAMILY_IPV4 what changed", ...printed(TILL));
    await expect.poll(lines, PATIENCE).toEqual(said);

    // The stream breaks: what it holds is still worth something.
    relay.cut();
    await writeFile(file, shop(TILL));
    await relay.open();
    said.push("# FAMILY_IPV4 what changed", "- shop/cart:http PROTOCOL_TCP");
    await expect.poll(lines, PATIENCE).toEqual(said);

    // The node-state server itself goes: another one counts from anew, and the consumer finds out what is different.
    stateServer.kill("SIGKILL");
    await once(stateServer, "exit");
    await writeFile(file, shop(CART, { ...TILL, endpoints: [] }));
    stateServer = serve();
    said.push("# FAMILY_IPV4 everything", ...printed(CART), ...printed({ ...TILL, endpoints: [] }));
    await expect.poll(lines, PATIENCE).toEqual(said);
    stateServer.kill("SIGTERM");
    await once(stateServer, "exit");
    await writeFile(file, shop(CART));
    serve();
    said.push("# FAMILY_IPV4 everything", "- shop/till:http PROTOCOL_TCP");
    await expect.poll(lines, PATIENCE).toEqual(said);
  }, 60_000);
});
