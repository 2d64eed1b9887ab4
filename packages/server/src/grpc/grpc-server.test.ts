import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { SERVER_LIMITS } from "../node-api/server-limits.ts";
import { openGrpcServer, watchService } from "./grpc-server.ts";
import { ALL_RIGHTS } from "./peer-rights.ts";

const same = (bytes: Buffer): Buffer => bytes;

test("a list of messages arrives as so many messages, in order with others, and its callback comes when all are out", async () => {
  const numbered = (from: number, to: number): readonly Buffer[] =>
    Array.from({ length: to - from }, (_, index) => Buffer.from(`${from + index}`));
  const out: number[] = [];
  const service = watchService(
    "/test.Sets/Watch",
    () => ALL_RIGHTS,
    async (call) => {
      call.resume();
      call.write(Buffer.from("0"), () => out.push(1));
      call.write(numbered(1, 2_000), () => out.push(2_000));
      call.write(Buffer.from("2000"), () => out.push(2_001));
      call.write(numbered(2_001, 2_002), () => call.end());
      await once(call, "close");
    },
  );
  const entryPoint = openGrpcServer([service], SERVER_LIMITS);
  const server = createServer(entryPoint.accept).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new Client(`127.0.0.1:${(server.address() as AddressInfo).port}`, credentials.createInsecure());
  const call = client.makeBidiStreamRequest<Buffer, Buffer>("/test.Sets/Watch", same, same, new Metadata());
  const got: string[] = [];
  call.on("data", (bytes: Buffer) => got.push(bytes.toString()));
  await once(call, "end");
  expect(got).toEqual(numbered(0, 2_002).map(String));
  expect(out).toEqual([1, 2_000, 2_001]);
  client.close();
  entryPoint.close();
  server.close();
});
