import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { RecordingLog, rawService, rawSlice, TestClock, upsertRaw } from "@turnout/core/testing";
import { createStoreProvider, serveNodeState, type NodeStateServer, type NodeStateServerOptions } from "@turnout/server/serve";
import { createKpngApi } from "../server/kpng-services.ts";
import { KpngWatcher } from "./kpng-watcher.ts";

/** A node-state server on a socket of its own, with kpng's protocols, and a store that a test fills. It ends with the test. */
export class TestStateServer {
  readonly target: string;
  readonly store: Store = new Store({ keepsPodNames: true });
  readonly clock: TestClock = new TestClock();
  readonly log: RecordingLog = new RecordingLog();
  server: NodeStateServer | undefined;

  private constructor(directory: string) {
    this.target = `unix://${join(directory, "node.sock")}`;
  }

  static async start(options: Partial<NodeStateServerOptions> & { readonly isSynced?: boolean } = {}): Promise<TestStateServer> {
    const stateServer = new TestStateServer(await testDirectory());
    onTestFinished(() => stateServer.server?.close());
    if (options.isSynced !== false) stateServer.sync();
    await stateServer.serve(options);
    return stateServer;
  }

  /** Serve, also again. */
  async serve(options: Partial<NodeStateServerOptions> = {}): Promise<void> {
    const provider = createStoreProvider(this.store, () => undefined);
    const common = { provider, listen: [this.target], version: "test server", clock: this.clock, log: this.log };
    this.server = await serveNodeState({ ...common, kpng: createKpngApi, ...options });
  }

  sync(): void {
    for (const kind of OBJECT_KINDS) this.store.markSynced(kind);
  }

  /** Put a Service `s<index>` with one endpoint on the node into the store. */
  service(index: number, node = "node9", ip = `10.1.0.${index % 250}`): void {
    upsertRaw(this.store, rawService(`s${index}`, { clusterIP: `10.96.${Math.floor(index / 250)}.${index % 250}` }));
    upsertRaw(this.store, rawSlice(`s${index}`, [{ ip, node }]));
  }

  /** Put a Service `cart` with a pod on each of two nodes into the store. */
  cart(ips: readonly [string, string] = ["10.1.1.1", "10.1.2.1"]): void {
    const pods = [
      { ip: ips[0], node: "node1", pod: "cart-a" },
      { ip: ips[1], node: "node2", pod: "cart-b" },
    ];
    for (const raw of [rawService("cart", { clusterIP: "10.96.0.10" }), rawSlice("cart", pods)]) upsertRaw(this.store, raw);
  }

  open(path?: string): KpngWatcher {
    return new KpngWatcher(this.target, path);
  }
}

/** Make a directory that is there until the test ends. */
export async function testDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-kpng-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Lines of a log at one level, as `level message`. */
export function linesOf(log: RecordingLog, level: "info" | "warn"): readonly string[] {
  return log.lines.flatMap((line) => (line.level === level ? [`${level} ${line.message}`] : []));
}

/** Wait until real sockets have made something so; the test's own timeout bounds it. */
export async function eventually(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}
