import type { IPFamily } from "@turnout/core";
import { isIPv6 } from "node:net";
import { answerFor } from "../agent/answer.ts";
import type { ServeRequest } from "../agent/protocol.ts";
import { openRawSocket } from "./raw-socket.ts";
import type { RawSocket } from "./raw-socket.ts";
import { decodeSctp, encodeSctp } from "./sctp-packet.ts";

/** The number of SCTP among IP protocols. */
export const SCTP_PROTOCOL = 132;

/** Pause between two looks at a raw socket; the kernel queues in between. */
const PAUSE_MS = { least: 2, most: 20 } as const;
/** Pauses are so many times as long as a look, so that servers that nobody asks leave the CPU to others where system calls are slow. */
const LOOKS_IN_A_PAUSE = 200;

/** Answer every SCTP INIT to a port with an INIT-ACK whose cookie says who answered and whom it saw. */
export async function serveSctp(request: ServeRequest): Promise<{ stop(): void }> {
  const families: readonly IPFamily[] = request.address === undefined ? ["IPv4", "IPv6"] : [isIPv6(request.address) ? "IPv6" : "IPv4"];
  const sockets = await Promise.all(families.map((family) => openRawSocket(family, SCTP_PROTOCOL)));
  if (request.address !== undefined) sockets[0]?.bind(request.address);
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    const startMs = performance.now();
    for (const socket of sockets) answerWaiting(socket, request);
    timer = setTimeout(look, pauseAfter(performance.now() - startMs));
  };
  look();
  return {
    stop: () => {
      clearTimeout(timer);
      for (const socket of sockets) socket.close();
    },
  };
}

/** How long to wait after a look that took so long, in ms. Pure. */
export function pauseAfter(pollMs: number): number {
  return Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, pollMs * LOOKS_IN_A_PAUSE));
}

function answerWaiting(socket: RawSocket, request: ServeRequest): void {
  for (let packet = socket.receive(); packet !== undefined; packet = socket.receive()) {
    const init = decodeSctp(packet.payload);
    if (init?.kind !== "INIT" || init.destinationPort !== request.port) continue;
    const answer = {
      kind: "INIT-ACK" as const,
      sourcePort: request.port,
      destinationPort: init.sourcePort,
      verificationTag: init.initiateTag,
      initiateTag: init.initiateTag,
      cookie: Buffer.from(JSON.stringify(answerFor(request.name, packet.from, init.sourcePort))),
    };
    socket.send(encodeSctp(answer), packet.from);
  }
}
