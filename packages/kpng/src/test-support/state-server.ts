import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { RecordingLog, rawService, rawSlice, TestClock, upsertRaw } from "@turnout/core/testing";
import { createStoreProvider, serveNodeState, type NodeStateServer, type NodeStateServerOptions } from "@turnout/server/serve";
import { createKpngApi } from "../server/kpng-services.ts";

/** A node-state server on a socket of its own, with kpng's protocols, and a store that a test fills. */
export class TestStateServer {
  readonly target: string;
  readonly store: Store = new Store({ keepsPodNames: true });
  readonly clock: TestClock = new TestClock();
  readonly log: RecordingLog = new RecordingLog();
  server: NodeStateServer | undefined;
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.target = `unix://${join(directory, "node.sock")}`;
  }

  static async start(options: Partial<NodeStateServerOptions> & { readonly isSynced?: boolean } = {}): Promise<TestStateServer> {
    const stateServer = new TestStateServer(await mkdtemp(join(tmpdir(), "turnout-state-")));
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

  async remove(): Promise<void> {
    await this.server?.close();
    await rm(this.#directory, { recursive: true });
  }
}

/** Lines of a log at one level, as `level message`. */
export function linesOf(log: RecordingLog, level: "info" | "warn"): readonly string[] {
  return log.lines.flatMap((line) => (line.level === level ? [`${level} ${line.message}`] : []));
}

/** Wait until real sockets have made something so; the test's own timeout bounds it. */
export async function eventually(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}
