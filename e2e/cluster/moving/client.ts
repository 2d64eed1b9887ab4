// Runs in a pod, or beside the cluster, by Node alone: `node client.ts HOST:PORT`. Keeps connections open that are asked again and again, opens new
// ones all the time, and writes what became of them as a line of JSON each second.
import { connect } from "node:net";
import type { Socket } from "node:net";

const KEPT = 50;
const ASK_MS = 200;
const NEW_MS = 25;
const ANSWER_MS = 5_000;

const [, host = "", port = ""] = /^\[?([^\]]*)\]?:(\d+)$/.exec(process.argv[2] ?? "") ?? [];
const tally = { kept: 0, broken: 0, tried: 0, failed: 0, why: "" };

/** Ask, and wait for the answer. @throws {Error} when none comes in time, or the connection ends. */
function answered(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.reject(new Error("closed"));
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => settle(() => reject(new Error("no answer"))), ANSWER_MS);
    const onData = (): void => settle(resolve);
    const onEnd = (error?: Error): void => settle(() => reject(error ?? new Error("closed")));
    const settle = (then: () => void): void => {
      clearTimeout(late);
      socket.off("data", onData).off("error", onEnd).off("close", onEnd);
      then();
    };
    socket.on("data", onData).on("error", onEnd).on("close", onEnd);
    socket.write("x");
  });
}

const note = (what: string, error: unknown): void =>
  void (tally.why = `${what} at ${new Date().toISOString()}: ${(error as Error).message}`);

async function keep(): Promise<void> {
  const socket = connect({ host, port: Number(port) }).on("error", () => undefined);
  try {
    await answered(socket);
    tally.kept += 1;
  } catch (error) {
    socket.destroy();
    // What can't be opened is for those that are new to tell.
    if (tally.tried === 0) note("a first connection", error);
    setTimeout(() => void keep(), ASK_MS);
    return;
  }
  try {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
      await answered(socket);
    }
  } catch (error) {
    tally.broken += 1;
    note("a kept connection", error);
  }
}

async function open(): Promise<void> {
  const socket = connect({ host, port: Number(port) }).on("error", () => undefined);
  try {
    await answered(socket);
  } catch (error) {
    tally.failed += 1;
    note("a new connection", error);
  } finally {
    tally.tried += 1;
    socket.destroy();
  }
}

for (let count = 0; count < KEPT; count++) void keep();
setInterval(() => {
  // New ones begin when all that are kept are there.
  if (tally.kept >= KEPT) void open();
}, NEW_MS);
setInterval(() => process.stdout.write(`${JSON.stringify(tally)}\n`), 1_000);
process.once("SIGTERM", () => process.exit(0));
