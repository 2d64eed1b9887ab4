import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { DEFAULT_SETTINGS } from "@turnout/core";
import { RecordingLog, TestClock } from "@turnout/core/testing";
import { eventually, testDirectory } from "../test-support/state-server.ts";
import { KpngLink } from "./kpng-link.ts";
import { GLOBAL_WATCH_PATH } from "./paths.ts";

test("a node-state server that takes the question and never begins to answer is given up after 10 s", async () => {
  const directory = await testDirectory();
  const server = new Server();
  const same = (bytes: Buffer): Buffer => bytes;
  const serializers = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  let streams = 0;
  server.addService(
    { watch: { path: GLOBAL_WATCH_PATH, requestStream: true, responseStream: true, ...serializers } },
    { watch: () => void (streams += 1) },
  );
  const target = `unix://${join(directory, "kpng.sock")}`;
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(target.replace("unix://", "unix:"), ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  const clock = new TestClock();
  const options = {
    target,
    tls: undefined,
    nodeName: "node1",
    settings: DEFAULT_SETTINGS,
    bindAddress: undefined,
    clock,
    log: new RecordingLog(),
  };
  const link = new KpngLink({ ...options, onNews: () => undefined });
  const reason = link.follow(new AbortController().signal);
  await eventually(() => streams === 1);
  await clock.advance(10_000);
  expect(String(await reason)).toMatch(/\[timed_out\] kpng's globalv1 did not begin within 10 s/);
  link.close();
  server.forceShutdown();
});
