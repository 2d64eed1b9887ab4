import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createApiServer, type ApiServer } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import { KubeRun, service, slice, watching } from "../test-support/kube.ts";
import { eventually, untilTestEnds } from "../test-support/world.ts";

/** What is answered to a request path; undefined: what the API server behind it says. */
type Answer = (path: string) => Buffer | undefined;

/** Something between us and the API server that answers in its place when told to. */
class Front {
  answer: Answer | undefined;
  answered = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(backPort: number) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined);
      socket.once("data", (data) => {
        const bytes = this.answer?.(data.toString("latin1").split(" ")[1] ?? "");
        if (bytes !== undefined) {
          this.answered++;
          socket.end(bytes);
          return;
        }
        const back = connect(backPort, "127.0.0.1");
        back.on("error", () => socket.destroy());
        back.write(data);
        socket.pipe(back).pipe(socket);
        socket.on("close", () => back.destroy());
      });
    });
  }

  static async open(backPort: number): Promise<Front> {
    const front = new Front(backPort);
    front.#server.listen(0, "127.0.0.1");
    await once(front.#server, "listening");
    return front;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

let api: ApiServer;
let front: Front;
let run: KubeRun;

beforeEach(async () => {
  run = await KubeRun.create();
  api = untilTestEnds(await createApiServer());
  for (const object of [service("cart"), slice("cart-1")]) api.apply(object);
  front = untilTestEnds(await Front.open(Number(new URL(api.url).port)));
});

/** Let the front answer for a while, then the API server. Gives what was delivered meanwhile; what changed afterwards must come. */
async function deliveredWhile(answer: Answer): Promise<readonly string[]> {
  await run.follow({ kubeconfig: () => api.kubeconfig({ server: front.url }) });
  await watching(api);
  run.sink.drain();
  front.answer = answer;
  front.cut();
  await eventually(() => front.answered >= 12 && run.log.failing().size === 4);
  const delivered = run.sink.drain();
  front.answer = undefined;
  front.cut();
  api.apply(service("till"));
  await run.sink.until(({ objects }) => objects.has("Service shop/till"));
  return delivered;
}

function http(status: string, body: string | Buffer, header = ""): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${header}content-length: ${bytes.length}\r\n\r\n`), bytes]);
}

const ok = (body: string | Buffer, header?: string): Buffer => http("200 OK", body, header);
const event = (type: string, object: unknown): Buffer => ok(`${JSON.stringify({ type, object })}\n`);
const NAMED = { name: "cart", namespace: "shop", resourceVersion: "999" };

describe("whatever is answered, nothing goes, and the next good answer is followed:", () => {
  const answers: readonly (readonly [name: string, bytes: Buffer])[] = [
    ["nothing", Buffer.alloc(0)],
    ["no HTTP", Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")],
    ["random bytes", Buffer.from([0, 255, 21, 3, 1, 0, 2, 2, 70])],
    ["headers without end", Buffer.from(`HTTP/1.1 200 OK\r\n${"x-a: b\r\n".repeat(40_000)}`)],
    ["another protocol", Buffer.from("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")],
    ["a redirect", http("302 Found", "", "location: http://192.0.2.1/\r\n")],
    ["no content", Buffer.from("HTTP/1.1 204 No Content\r\n\r\n")],
    ["a login page", ok("<html>Welcome to the hotel</html>")],
    ["a body in chunks that are none", Buffer.from("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")],
    ["a body cut short", Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n{"type":"DELETED"')],
    ["packed text", ok(Buffer.from("1f8b0800", "hex"), "content-encoding: gzip\r\n")],
    ["text that is no UTF-8", ok(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d, 0x0a]))],
    ["brackets without end", ok(`${"[".repeat(200_000)}\n`)],
    ["a line without end", ok("a".repeat(1_000_000))],
    ["an event of nothing", event("DELETED", null)],
    ["an event without metadata", event("DELETED", { kind: "Service" })],
    ["an event of another kind", event("DELETED", { kind: "Pod", metadata: NAMED })],
    ["an event without a revision", event("DELETED", { kind: "Service", metadata: { name: "cart", namespace: "shop" } })],
    ["an event nobody knows", event("PURGED", { kind: "Service", metadata: NAMED })],
    ["an error of nothing", event("ERROR", null)],
    ["an error without end", event("ERROR", { code: 500, message: "x".repeat(100_000) })],
    ["that everything is forgotten, always", event("ERROR", { code: 410, reason: "Expired" })],
    ["a Status that is odd", http("500 Oops", '{"code":"x","message":7,"details":[],"reason":{}}')],
    ["a wait of years", http("429 Too Many Requests", "", "retry-after: -1e99\r\n")],
  ];
  it.each(answers)("%s", async (_name, bytes) => {
    expect(await deliveredWhile(() => bytes)).toEqual([]);
  });
});

describe("whatever comes as a list, nothing goes:", () => {
  const lists: readonly (readonly [name: string, body: string])[] = [
    ["an object of nothing", "{}"],
    ["a list of nothing in particular", '{"metadata":{"resourceVersion":"9"},"items":[]}'],
    ["a list of another kind", '{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[]}'],
    ["a Status", '{"kind":"Status","metadata":{"resourceVersion":"9"},"status":"Success"}'],
    ["half a list", '{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":['],
  ];
  it.each(lists)("%s", async (_name, body) => {
    api.misbehave({ watchList: 422 });
    const gone = JSON.stringify({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    expect(await deliveredWhile((path) => ok(path.includes("watch=true") ? `${gone}\n` : body))).toEqual([]);
  });
});
