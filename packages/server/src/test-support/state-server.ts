import { join } from "node:path";
import {
  DeliveryReader,
  FAMILY_WORDS,
  openNodeStream,
  wireSettings,
  type Delivery,
  type NodeStream,
  type wire,
} from "@turnout/client/protocol";
import { OBJECT_KINDS, Store, type IPFamily, type Issue, type NodeSettings, type ProxyError } from "@turnout/core";
import { POD_SETTINGS, rawService, rawSlice, upsertRaw } from "@turnout/core/testing";
import { onTestFinished } from "vitest";
import { createStoreProvider } from "../node-api/node-state-provider.ts";
import { serveNodeState, type NodeStateServer, type NodeStateServerOptions } from "../node-api/node-state-server.ts";
import { ManualClock, RecordingLog, testDirectory } from "./world.ts";

/** A node-state server on a socket of its own, with a store that a test fills. It ends with the test. */
export class TestStateServer {
  readonly directory: string;
  readonly target: string;
  readonly store: Store = new Store({ keepsPodNames: true });
  readonly issues: Issue[] = [];
  readonly clock: ManualClock = new ManualClock();
  readonly log: RecordingLog = new RecordingLog();
  server: NodeStateServer | undefined;
  readonly #watchers: RawWatcher[] = [];

  private constructor(directory: string) {
    this.directory = directory;
    this.target = `unix://${join(directory, "node.sock")}`;
  }

  static async start(options: Partial<NodeStateServerOptions> & { readonly isSynced?: boolean } = {}): Promise<TestStateServer> {
    const stateServer = new TestStateServer(await testDirectory());
    onTestFinished(() => stateServer.#end());
    if (options.isSynced !== false) stateServer.sync();
    await stateServer.serve(options);
    return stateServer;
  }

  /** Serve, also again. */
  async serve(options: Partial<NodeStateServerOptions> = {}): Promise<void> {
    const provider = createStoreProvider(this.store, (issue) => void this.issues.push(issue));
    const common = { provider, listen: [this.target], version: "test server", clock: this.clock, log: this.log };
    this.server = await serveNodeState({ ...common, ...options });
  }

  sync(): void {
    for (const kind of OBJECT_KINDS) this.store.markSynced(kind);
  }

  /** Put a Service `s<index>` with one endpoint on the node into the store. */
  service(index: number, node = "node9", ip = `10.1.0.${index % 250}`): void {
    upsertRaw(this.store, rawService(`s${index}`, { clusterIP: `10.96.${Math.floor(index / 250)}.${index % 250}` }));
    upsertRaw(this.store, rawSlice(`s${index}`, [{ ip, node }]));
  }

  /** Open a stream that asks only when told to. */
  async watch(hello: Partial<wire.Hello> = {}): Promise<RawWatcher> {
    const watcher = await RawWatcher.open(this.target, hello);
    this.#watchers.push(watcher);
    return watcher;
  }

  async #end(): Promise<void> {
    for (const watcher of this.#watchers) watcher.stream.cancel();
    await this.server?.close();
  }
}

/** A hello of node1. */
export function testHello(overrides: Partial<wire.Hello> = {}, settings: NodeSettings = POD_SETTINGS): wire.Hello {
  return { nodeName: "node1", settings: wireSettings(settings), bindAddress: "", version: "test", capabilities: [], ...overrides };
}

/** A client that does nothing by itself. */
export class RawWatcher {
  readonly received: wire.WatchResponse[] = [];
  readonly deliveries: Delivery[] = [];
  readonly #readers = { IPv4: new DeliveryReader("IPv4", POD_SETTINGS), IPv6: new DeliveryReader("IPv6", POD_SETTINGS) };
  #wake: () => void = () => undefined;
  #stream: NodeStream | undefined;

  static async open(target: string, hello: Partial<wire.Hello> = {}): Promise<RawWatcher> {
    const watcher = new RawWatcher();
    watcher.#stream = await openNodeStream(target, (response) => watcher.#hear(response));
    watcher.stream.send({ request: { $case: "hello", value: testHello(hello) } });
    return watcher;
  }

  get stream(): NodeStream {
    if (this.#stream === undefined) throw new Error("not open");
    return this.#stream;
  }

  ask(family: IPFamily = "IPv4", instance = "", revision = 0): void {
    this.stream.send({ request: { $case: "ask", value: { family: FAMILY_WORDS.write(family), instance, revision } } });
  }

  /** Ask from where the last delivery ended, and wait for what comes. */
  async next(family: IPFamily = "IPv4"): Promise<Delivery> {
    const { instance = "", revision = 0 } = this.deliveries.at(-1)?.changes ?? {};
    this.ask(family, instance, revision);
    return await this.delivery();
  }

  /** Wait for the delivery after those there are. @throws {ProxyError} why the stream ended. */
  async delivery(): Promise<Delivery> {
    const before = this.deliveries.length;
    for (;;) {
      const delivery = this.deliveries[before];
      if (delivery !== undefined) return delivery;
      const news = new Promise<undefined>((resolve) => (this.#wake = (): void => resolve(undefined)));
      const ended: ProxyError | undefined = await Promise.race([news, this.stream.ended]);
      if (ended !== undefined) throw ended;
    }
  }

  #hear(response: wire.WatchResponse): void {
    this.received.push(response);
    if (response.response?.$case !== "changeSet") return;
    const delivery = this.#readers[FAMILY_WORDS.read(response.response.value.family)].receive(response.response.value);
    if (delivery !== undefined) this.deliveries.push(delivery);
    this.#wake();
  }
}
