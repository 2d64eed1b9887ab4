import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ProxyError } from "@turnout/core/backend";
import { DEFAULT_TIMEOUT_MS } from "../agent/answer.ts";
import type { StrayRequest } from "../agent/protocol.ts";
import { openRawSocket } from "./raw-socket.ts";
import { decodeTcp, encodeTcp, TCP_FLAGS } from "./tcp-segment.ts";

const TCP_PROTOCOL = 6;
/** Beyond every window that there can be. @source RFC 7323 section 2.2: 2^30 bytes at most */
const BEYOND = 2 ** 30 + 2 ** 29;
const PAUSE_MS = 2;

/**
 * Wait for data that comes to one of this place's TCP servers, and send its client one segment beside the server's own: right but for its sequence
 * number, which is outside of every window.
 *
 * Shape: resolves when that is sent. A client that takes it for another connection's answers it with a reset that this server's connection obeys.
 * @throws {ProxyError} `timed_out` when no data came; {@link openRawSocket}'s errors.
 */
export async function sendStray({ address, port, timeoutMs = DEFAULT_TIMEOUT_MS }: StrayRequest): Promise<void> {
  const socket = await openRawSocket(isIPv6(address) ? "IPv6" : "IPv4", TCP_PROTOCOL);
  try {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const isLast = performance.now() >= untilMs;
      for (let packet = socket.receive(); packet !== undefined; packet = socket.receive()) {
        const heard = decodeTcp(packet.payload);
        if (heard.destinationPort !== port || heard.data.length === 0) continue;
        const stray = {
          sourcePort: port,
          destinationPort: heard.sourcePort,
          sequence: heard.acknowledged + BEYOND,
          acknowledged: heard.sequence + heard.data.length,
          flags: TCP_FLAGS.PSH | TCP_FLAGS.ACK,
          data: Buffer.from("stray"),
        };
        return socket.send(encodeTcp(stray, address, packet.from), packet.from);
      }
      if (isLast) throw new ProxyError("timed_out", "no data came to the server", { object: `${address} ${port}` });
      await sleep(PAUSE_MS);
    }
  } finally {
    socket.close();
  }
}
