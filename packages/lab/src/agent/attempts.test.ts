import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { attempt } from "./attempts.ts";

/** Nobody listens there on 127.0.0.1: somebody did a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Have this process do nothing else until its timers are long due. */
function oversleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it.each(["TCP", "HTTP", "UDP"] as const)("an answer that lies there is no silence, however late the asker is: %s", async (transport) => {
  const asking = attempt({ address: "127.0.0.1", port: await closedPort(), transport, timeoutMs: 40 });
  await Promise.resolve();
  oversleep(100);
  expect(await asking).toMatchObject({ outcome: "refused" });
});
