import { once } from "node:events";
import { join } from "node:path";
import { createServer } from "node:net";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "../link/paths.ts";
import { OBJECT_KINDS, Store } from "@turnout/core";
import { ALL_RIGHTS, openGrpcServer, SERVER_LIMITS, Traffic, type Admit } from "@turnout/server/serve";
import { createKpngApi } from "../server/kpng-services.ts";
import { RecordingLog } from "@turnout/core/testing";
import { onTestFinished } from "vitest";
import { testDirectory } from "./state-server.ts";

/** A node-state server on a socket of its own that speaks nothing but kpng's protocols, or one of them. It ends with the test. */
export class TestKpngServer {
  readonly target: string;
  readonly store: Store;
  #stop: () => void = () => undefined;

  private constructor(directory: string, store: Store) {
    this.store = store;
    this.target = `unix://${join(directory, "kpng.sock")}`;
  }

  static async start(
    protocols: readonly ("globalv1" | "localv1")[],
    store: Store = new Store({ keepsPodNames: true }),
  ): Promise<TestKpngServer> {
    const stateServer = new TestKpngServer(await testDirectory(), store);
    onTestFinished(() => stateServer.stop());
    for (const kind of OBJECT_KINDS) stateServer.store.markSynced(kind);
    await stateServer.serve(protocols);
    return stateServer;
  }

  /** Serve, also again and otherwise. */
  async serve(protocols: readonly ("globalv1" | "localv1")[]): Promise<void> {
    const slot = { assign: () => undefined, leave: () => undefined };
    const admit: Admit = (_call, _rights, run) => run(slot);
    const options = { onlyNode: undefined, imagesMax: 10, log: new RecordingLog(), report: () => undefined, traffic: new Traffic(), admit };
    const paths: readonly string[] = protocols.map((protocol) => (protocol === "globalv1" ? GLOBAL_WATCH_PATH : LOCAL_WATCH_PATH));
    const services = createKpngApi({ store: this.store, ...options }).services(() => ALL_RIGHTS);
    const grpc = openGrpcServer(
      services.filter(({ definition }) => paths.includes(definition["watch"]?.path ?? "")),
      SERVER_LIMITS,
    );
    const server = createServer((socket) => grpc.accept(socket)).listen(this.target.replace("unix://", ""));
    this.#stop = (): void => {
      server.close();
      grpc.close();
    };
    await once(server, "listening");
  }

  /** Go away, with every connection. */
  stop(): void {
    this.#stop();
  }
}
