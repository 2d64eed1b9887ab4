import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "@turnout/client/protocol";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { sendLists } from "../grpc/grpc-server.ts";
import { createKpngApi } from "../kpng-api/kpng-services.ts";
import { ALL_RIGHTS } from "../grpc/peer-rights.ts";
import { Traffic } from "../grpc/traffic.ts";
import type { Admit } from "../grpc/refuse.ts";
import { RecordingLog } from "./world.ts";

/** A node-state server on a socket of its own that speaks nothing but kpng's protocols, or one of them. */
export class TestKpngServer {
  readonly target: string;
  readonly store: Store;
  readonly #directory: string;
  #server: Server | undefined;

  private constructor(directory: string, store: Store) {
    this.store = store;
    this.#directory = directory;
    this.target = `unix://${join(directory, "kpng.sock")}`;
  }

  static async start(
    protocols: readonly ("globalv1" | "localv1")[],
    store: Store = new Store({ keepsPodNames: true }),
  ): Promise<TestKpngServer> {
    const stateServer = new TestKpngServer(await mkdtemp(join(tmpdir(), "turnout-kpng-")), store);
    for (const kind of OBJECT_KINDS) stateServer.store.markSynced(kind);
    await stateServer.serve(protocols);
    return stateServer;
  }

  /** Serve, also again and otherwise. */
  async serve(protocols: readonly ("globalv1" | "localv1")[]): Promise<void> {
    const slot = { assign: () => undefined, leave: () => undefined };
    const admit: Admit = (_call, _rights, run) => run(slot);
    const options = { onlyNode: undefined, imagesMax: 10, log: new RecordingLog(), report: () => undefined, traffic: new Traffic(), admit };
    const server = (this.#server = new Server({ interceptors: [sendLists] }));
    const paths: readonly string[] = protocols.map((protocol) => (protocol === "globalv1" ? GLOBAL_WATCH_PATH : LOCAL_WATCH_PATH));
    for (const { definition, handlers } of createKpngApi({ store: this.store, ...options }).services(() => ALL_RIGHTS)) {
      if (paths.includes(definition["watch"]?.path ?? "")) server.addService(definition, handlers);
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.bindAsync(this.target.replace("unix://", "unix:"), ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
    await promise;
  }

  /** Go away, with every connection. */
  stop(): void {
    this.#server?.forceShutdown();
  }

  async remove(): Promise<void> {
    this.stop();
    await rm(this.#directory, { recursive: true });
  }
}
