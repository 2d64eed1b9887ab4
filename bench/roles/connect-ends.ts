import { connect as connectSocket, createServer } from "node:net";
import type { Harness } from "../line-channel.ts";
import { TARGET_PORT } from "../workload.ts";

/** Where to connect to. */
export interface ConnectTarget {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** What a client does: connect to each target in turn, `count` times. */
export interface ConnectClientParameters {
  readonly targets: readonly ConnectTarget[];
  readonly count: number;
}

/** Rounds before those that count. */
const WARM_UP = 300;

/** Accept connections until the harness goes away. Phase: `listening`, which nobody has to answer. */
export async function connectServer(_parameters: unknown, harness: Harness): Promise<void> {
  // Clients reset what they opened: that is no error here.
  const server = createServer((socket) => socket.on("error", () => undefined));
  await new Promise<void>((resolve) => server.listen(TARGET_PORT, "0.0.0.0", 4096, resolve));
  await harness.reached("listening");
}

/** Time TCP connects as a Node program sees them, one at a time; ms by target name. */
export async function connectClient({ targets, count }: ConnectClientParameters): Promise<Readonly<Record<string, readonly number[]>>> {
  const samples: Record<string, number[]> = Object.fromEntries(targets.map(({ name }) => [name, []]));
  for (let k = 0; k < WARM_UP + count; k++) {
    for (const target of targets) {
      const ms = await connectOnce(target);
      if (k >= WARM_UP) samples[target.name]?.push(ms);
    }
  }
  return samples;
}

/** Open a TCP connection and reset it; resolves to the ms until it was open. */
export function connectOnce({ address, port }: Pick<ConnectTarget, "address" | "port">): Promise<number> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const socket = connectSocket({ host: address, port, timeout: 5000 });
    socket.once("error", reject);
    socket.once("timeout", () => socket.destroy(new Error(`no answer from ${address}:${port}`)));
    socket.once("connect", () => {
      const ms = performance.now() - startMs;
      // A reset instead of a goodbye: no TIME_WAIT, so ports don't run out.
      socket.resetAndDestroy();
      resolve(ms);
    });
  });
}
