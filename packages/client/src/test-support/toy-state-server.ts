import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { ChangeSet } from "@turnout/core";
import * as wire from "../gen/turnout/node/v1/node.ts";
import type { Eligibility } from "../api/eligibility.ts";
import { WATCH_PATH } from "../api/watch/node-stream.ts";
import { encodeDelivery } from "../api/wire/change-set-codec.ts";

/** One stream as a toy node-state server sees it. */
export interface ToyStream {
  readonly requests: wire.WatchRequest[];
  welcome(): void;
  answer(changes: ChangeSet, eligibility?: Eligibility): void;
  sendBytes(bytes: Buffer): void;
  fail(code: number, details: string): void;
  end(): void;
}

/** A node-state server that says what a test tells it to, right or wrong. */
export class ToyStateServer {
  readonly directory: string;
  readonly path: string;
  readonly target: string;
  readonly streams: ToyStream[] = [];
  /** What happens to each new stream; default a welcome. */
  onStream: (stream: ToyStream) => void = (stream) => stream.welcome();
  #server: Server | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.path = join(directory, "node.sock");
    this.target = `unix://${this.path}`;
  }

  /** Make the place where it will listen, and nothing in it. */
  static async create(): Promise<ToyStateServer> {
    return new ToyStateServer(await mkdtemp(join(tmpdir(), "turnout-toy-state-")));
  }

  /** Listen; `service` false leaves out the one thing it is asked for. */
  async listen(service: boolean = true): Promise<void> {
    const server = (this.#server = new Server());
    const same = (bytes: Buffer): Buffer => bytes;
    const serializers = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
    if (service) {
      server.addService(
        { watch: { path: WATCH_PATH, requestStream: true, responseStream: true, ...serializers } },
        { watch: (call: ServerDuplexStream<Buffer, Buffer>) => this.#receive(call) },
      );
    }
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.path}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Break all streams off and stop listening. */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  async remove(): Promise<void> {
    this.stop();
    await rm(this.directory, { recursive: true });
  }

  #receive(call: ServerDuplexStream<Buffer, Buffer>): void {
    const requests: wire.WatchRequest[] = [];
    const send = (response: wire.WatchResponse): void => void call.write(Buffer.from(wire.WatchResponse.encode(response).finish()));
    const stream: ToyStream = {
      requests,
      welcome: () => send({ response: { $case: "welcome", value: { version: "toy", capabilities: [] } } }),
      answer: (changes, eligibility) => {
        for (const bytes of encodeDelivery({ changes, eligibility }, { partBytes: 200 })) call.write(bytes);
      },
      sendBytes: (bytes) => void call.write(bytes),
      fail: (code, details) => void call.emit("error", { code, details }),
      end: () => call.end(),
    };
    call.on("data", (bytes: Buffer) => requests.push(wire.WatchRequest.decode(bytes)));
    call.on("error", () => undefined);
    this.streams.push(stream);
    this.onStream(stream);
  }
}

/** The asks of a stream so far. */
export function asksOf({ requests }: ToyStream): readonly wire.Ask[] {
  return requests.flatMap(({ request }) => (request?.$case === "ask" ? [request.value] : []));
}
