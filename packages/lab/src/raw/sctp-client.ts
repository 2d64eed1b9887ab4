import { randomInt } from "node:crypto";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_TIMEOUT_MS, isFiltered, outcomeOf } from "../agent/answer.ts";
import type { ServerReply, Attempt, TargetRequest } from "../agent/protocol.ts";
import { openRawSocket } from "./raw-socket.ts";
import type { RawSocket } from "./raw-socket.ts";
import type { SctpPacket } from "./sctp-packet.ts";
import { decodeSctp, encodeSctp } from "./sctp-packet.ts";
import { pauseAfter, SCTP_PROTOCOL } from "./sctp-server.ts";

let last: Promise<unknown> = Promise.resolve();

/**
 * Send one SCTP INIT and wait for its INIT-ACK from the very address and port it was sent to.
 *
 * Edges: attempts of one process wait for each other, because the kernel tells every raw socket of an ICMP error to any of them.
 * @throws {Error} for a caller's mistake, {@link openRawSocket}'s errors, and `invalid_object` for an answer with a broken checksum.
 */
export function attemptSctp(request: TargetRequest): Promise<Omit<Attempt, "latencyMs">> {
  const mine = last.then(() => sendInit(request));
  last = Promise.allSettled([mine]);
  return mine;
}

async function sendInit(request: TargetRequest): Promise<Omit<Attempt, "latencyMs">> {
  const socket = await openRawSocket(isIPv6(request.address) ? "IPv6" : "IPv4", SCTP_PROTOCOL);
  const tag = randomInt(1, 2 ** 32);
  const sourcePort = request.fromPort ?? randomInt(32_768, 61_000);
  const init: SctpPacket = {
    kind: "INIT",
    sourcePort,
    destinationPort: request.port,
    verificationTag: 0,
    initiateTag: tag,
    cookie: Buffer.alloc(0),
  };
  try {
    if (request.fromAddress !== undefined) socket.bind(request.fromAddress);
    socket.connect(request.address);
    sendOrStop(socket, encodeSctp(init));
    const untilMs = performance.now() + (request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    for (;;) {
      // Asked before the look: an answer that lies there when this process is late is no silence.
      const startMs = performance.now();
      const isLast = startMs >= untilMs;
      const answer = answerTo(init, socket);
      if (answer !== undefined) return { outcome: "ok", localPort: sourcePort, ...answer };
      if (isLast) return { outcome: "timeout", localPort: sourcePort };
      await sleep(pauseAfter(performance.now() - startMs));
    }
  } catch (error) {
    const outcome = outcomeOf(error);
    if (outcome === undefined) throw error;
    return { outcome, localPort: sourcePort };
  } finally {
    socket.close();
  }
}

/** What the host's own filter stops is rejected, if an ICMP error follows, else dropped: not known yet. */
function sendOrStop(socket: RawSocket, packet: Buffer): void {
  try {
    socket.send(packet);
  } catch (error) {
    if (!isFiltered(error)) throw error;
  }
}

/** The socket is connected, so the kernel hands over only packets from the address asked. */
function answerTo(init: SctpPacket, socket: RawSocket): ServerReply | undefined {
  for (let packet = socket.receive(); packet !== undefined; packet = socket.receive()) {
    const answer = decodeSctp(packet.payload);
    const isOurs =
      answer?.kind === "INIT-ACK" &&
      answer.verificationTag === init.initiateTag &&
      answer.sourcePort === init.destinationPort &&
      answer.destinationPort === init.sourcePort;
    if (isOurs) return JSON.parse(Buffer.from(answer.cookie).toString()) as ServerReply;
  }
  return undefined;
}
