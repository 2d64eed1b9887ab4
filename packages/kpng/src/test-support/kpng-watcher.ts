import { Client, credentials, Metadata, type ClientDuplexStream, type ServiceError } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { LOCAL_WATCH_PATH } from "../link/paths.ts";

/** An op in short: `reset`, `sync`, `set PATH`, `delete PATH`. */
export function shortOp(bytes: Uint8Array): string {
  const { Op } = localv1.OpItem.decode(bytes);
  if (Op?.$case === "Set") return `set ${Op.value.Ref?.Path}`;
  if (Op?.$case === "Delete") return `delete ${Op.value.Path}`;
  return Op?.$case.toLowerCase() ?? "nothing";
}

/** A client of kpng's protocols that does nothing by itself, and keeps the bytes it gets. It leaves when the test ends. */
export class KpngWatcher {
  readonly messages: Buffer[] = [];
  /** Why the stream ended, as gRPC says it; "" while it has not. */
  ended = "";
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #ops: string[] = [];
  #taken = 0;
  #wake: () => void = () => undefined;

  /** `target` as `unix://PATH`, or a gRPC address with credentials. */
  constructor(
    target: string,
    path: string = LOCAL_WATCH_PATH,
    channel: ReturnType<typeof credentials.createSsl> = credentials.createInsecure(),
  ) {
    this.#client = new Client(target.replace("unix://", "unix:"), channel, { "grpc.use_local_subchannel_pool": 1 });
    const same = (bytes: Buffer): Buffer => bytes;
    this.#call = this.#client.makeBidiStreamRequest<Buffer, Buffer>(path, same, same, new Metadata());
    this.#call.on("data", (bytes: Buffer) => {
      this.messages.push(bytes);
      this.#ops.push(shortOp(bytes));
      this.#wake();
    });
    this.#call.on("error", (error: ServiceError) => this.#end(`${error.code} ${error.details}`));
    this.#call.on("end", () => this.#end("end"));
    onTestFinished(() => this.close());
  }

  /** Ask for one change set of a node. */
  ask(nodeName: string): void {
    this.send(localv1.WatchReq.encode({ NodeName: nodeName }).finish());
  }

  /** Ask for one change set of the cluster. */
  askGlobal(): void {
    this.send(globalv1.GlobalWatchReq.encode({}).finish());
  }

  send(bytes: Uint8Array): void {
    this.#call.write(Buffer.from(bytes));
  }

  /** The ops up to and including the next Sync, in short. @throws why the stream ended first. */
  async changes(): Promise<readonly string[]> {
    for (let at = this.#taken; ;) {
      for (; at < this.#ops.length; at++) {
        if (this.#ops[at] !== "sync") continue;
        const ops = this.#ops.slice(this.#taken, at + 1);
        this.#taken = at + 1;
        return ops;
      }
      if (this.ended !== "") throw new Error(this.ended);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves to why the stream ended. */
  async fate(): Promise<string> {
    while (this.ended === "") await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.ended;
  }

  /** What was set last under a path. @throws when nothing was. */
  value(path: string): Buffer {
    for (const bytes of this.messages.toReversed()) {
      const { Op } = localv1.OpItem.decode(bytes);
      if (Op?.$case === "Set" && Op.value.Ref?.Path === path) return Op.value.Bytes;
    }
    throw new Error(`nothing was set under ${path}`);
  }

  /** Take no more messages in, as a peer that is busy. */
  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  close(): void {
    this.#call.cancel();
    this.#client.close();
  }

  #end(reason: string): void {
    if (this.ended === "") this.ended = reason;
    this.#wake();
  }
}
