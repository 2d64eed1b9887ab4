import { readFile } from "node:fs/promises";
import { Client, credentials, Server, ServerCredentials, status, type ServerDuplexStream, type ServiceError } from "@grpc/grpc-js";
import { fetchFullState } from "@turnout/client";
import { WATCH_PATH, wire } from "@turnout/client/protocol";
import { rawNode, upsertRaw } from "@turnout/core/testing";
import { expect, test } from "vitest";
import { TestStateServer } from "../test-support/state-server.ts";
import { eventually } from "../test-support/world.ts";

/**
 * What passed between the client and the server of 0.1.0, byte by byte in base64, while the client fetched the state below. Nobody records it again:
 * a client of today has to understand that server, and a server of today that client.
 */
const FILE = new URL("../../test/first-published-watch.json", import.meta.url);

interface Recorded {
  readonly requests: readonly string[];
  readonly responses: readonly string[];
}

let stateServer: TestStateServer;
async function recorded(): Promise<Record<keyof Recorded, readonly Buffer[]>> {
  const { requests, responses } = JSON.parse(await readFile(FILE, "utf8")) as Recorded;
  const bytes = (texts: readonly string[]): readonly Buffer[] => texts.map((text) => Buffer.from(text, "base64"));
  return { requests: bytes(requests), responses: bytes(responses) };
}

async function serveShop(): Promise<void> {
  stateServer = await TestStateServer.start();
  upsertRaw(stateServer.store, rawNode("node1", { zone: "a", addresses: ["172.18.0.1", "fd00::1"] }));
  stateServer.service(1, "node1");
}

const asIs = (bytes: Buffer): Buffer => bytes;

test("the first published client gets its state from a server of today", async () => {
  await serveShop();
  const { requests, responses } = await recorded();
  const client = new Client(stateServer.target, credentials.createInsecure());
  const stream = client.makeBidiStreamRequest(WATCH_PATH, asIs, asIs);
  const said: wire.WatchResponse[] = [];
  stream.on("data", (bytes: Buffer) => void said.push(wire.WatchResponse.decode(bytes)));
  // The test cancels it.
  stream.on("error", ({ code }: ServiceError) => expect(code).toBe(status.CANCELLED));
  for (const bytes of requests) stream.write(bytes);
  await eventually(() => said.length === responses.length);
  stream.cancel();
  client.close();
  // Every field that the first client reads is there as it was; a server of today may say more.
  for (const bytes of responses) {
    const before = wire.WatchResponse.decode(bytes);
    const now = said.find((one) => familyOf(one) === familyOf(before));
    expect(constant(now)).toMatchObject(constant(before));
  }
});

test("a client of today gets its state from the first published server", async () => {
  stateServer = await TestStateServer.start();
  const { responses } = await recorded();
  const [welcome = Buffer.alloc(0), ...answers] = responses;
  const server = new Server();
  const types = { requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
  server.addService(
    { watch: { path: WATCH_PATH, requestStream: true, responseStream: true, ...types } },
    {
      watch: (call: ServerDuplexStream<Buffer, Buffer>) => {
        call.on("data", (bytes: Buffer) => {
          const { request } = wire.WatchRequest.decode(bytes);
          if (request?.$case === "hello") return void call.write(welcome);
          const answer = answers.find((one) => familyOf(wire.WatchResponse.decode(one)) === request?.value.family);
          call.write(answer ?? Buffer.alloc(0));
        });
      },
    },
  );
  const target = `unix:${stateServer.directory}/first.sock`;
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(target, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
  try {
    const { families } = await fetchFullState(`unix://${stateServer.directory}/first.sock`, { nodeName: "node1" });
    const [four, six] = [families.get("IPv4"), families.get("IPv6")];
    expect(four?.node).toMatchObject({ name: "node1", zone: "a", addresses: ["172.18.0.1"] });
    expect(six?.node).toMatchObject({ addresses: ["fd00::1"] });
    expect([...(four?.rows.values() ?? [])]).toMatchObject([
      { key: "shop/s1:http/TCP", endpoints: [{ ip: "10.1.0.1", isLocal: true }], destinations: [{ address: "10.96.0.1", port: 80 }] },
    ]);
    expect(six?.rows.size).toBe(0);
  } finally {
    server.forceShutdown();
  }
});

function familyOf({ response }: wire.WatchResponse): unknown {
  return response?.$case === "changeSet" ? response.value.family : undefined;
}

/** A response without what differs each time. */
function constant(response: wire.WatchResponse | undefined): object {
  const text = JSON.stringify(response?.response ?? {}, (name, value: unknown) =>
    /^(?:instance|revision|version)$|time/i.test(name) ? undefined : value,
  );
  return JSON.parse(text) as object;
}
