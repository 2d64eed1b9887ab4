import { Client, credentials, type ClientDuplexStream } from "@grpc/grpc-js";
import { FAMILY_WORDS, WATCH_PATH, wire } from "@turnout/client/protocol";
import { describe, expect, test } from "vitest";
import { TestStateServer, testHello } from "../test-support/state-server.ts";
import { eventually, untilTestEnds } from "../test-support/world.ts";

let stateServer: TestStateServer;

/** Say all that is to be said, as a tool does that was given a list of requests. */
function say(...requests: readonly wire.WatchRequest[]): ClientDuplexStream<Buffer, Buffer> {
  const client = untilTestEnds(new Client(stateServer.target, credentials.createInsecure()));
  const same = (bytes: Buffer): Buffer => bytes;
  const call = client.makeBidiStreamRequest(WATCH_PATH, same, same);
  for (const request of requests) call.write(Buffer.from(wire.WatchRequest.encode(request).finish()));
  call.end();
  return call;
}

/** What was answered, and gRPC's code at the end. */
async function answersOf(call: ClientDuplexStream<Buffer, Buffer>): Promise<readonly (string | number | undefined)[]> {
  const answers: (string | undefined)[] = [];
  const { promise, resolve } = Promise.withResolvers<number>();
  call.on("data", (bytes: Buffer) => {
    const { response } = wire.WatchResponse.decode(bytes);
    answers.push(
      response?.$case === "changeSet" ? `${FAMILY_WORDS.read(response.value.family)} ${response.value.revision > 0}` : response?.$case,
    );
  });
  call.on("error", () => undefined);
  call.on("status", ({ code }) => resolve(code));
  const code = await promise;
  return [...answers.sort((a = "", b = "") => a.localeCompare(b)), code];
}

const HELLO: wire.WatchRequest = { request: { $case: "hello", value: testHello() } };
const ASKS = (["IPv4", "IPv6"] as const).map((family): wire.WatchRequest => ({
  request: { $case: "ask", value: { family: FAMILY_WORDS.write(family), instance: "", revision: 0 } },
}));

describe("a client that has said all it will say", () => {
  test("gets the answers it waits for, also when they take their time, and then the end", async () => {
    stateServer = await TestStateServer.start({ isSynced: false });
    const answers = answersOf(say(HELLO, ...ASKS));
    await eventually(() => stateServer.server?.stats.questions === 1);
    stateServer.service(1);
    stateServer.sync();
    expect(await answers).toEqual(["IPv4 true", "IPv6 true", "welcome", 0]);
    await eventually(() => stateServer.server?.stats.streams === 0);
  });

  test("is let go at once when it asked for nothing", async () => {
    stateServer = await TestStateServer.start();
    expect(await answersOf(say(HELLO))).toEqual(["welcome", 0]);
  });

  test("is let go when it leaves while it waits", async () => {
    stateServer = await TestStateServer.start({ isSynced: false });
    const call = say(HELLO, ...ASKS);
    const answers = answersOf(call);
    await eventually(() => stateServer.server?.stats.questions === 1);
    call.cancel();
    expect(await answers).toEqual(expect.arrayContaining([1]));
    await eventually(() => stateServer.server?.stats.streams === 0);
  });
});
