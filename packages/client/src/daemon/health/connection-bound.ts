import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Log } from "@turnout/core";

/** Connections of one server; with all the headers that it takes, one holds about 25 KB. */
export const CONNECTIONS_MAX = 512;
/** Between two lines of the log. */
const QUIET_MS = 60_000;

/**
 * Keep the number of a server's connections within {@link CONNECTIONS_MAX}, and refuse no newcomer for it.
 *
 * Shape: where there are more, the connection is closed whose last step is longest ago; steps are that it was made, that a whole request came,
 * and that its answer was sent. So those go first that never finish a request, or ask for nothing more.
 * Edges: the log tells of it once a minute at most, with how many were closed since it told last.
 */
export function boundConnections(server: Server, address: string, clock: Clock, log: Log): void {
  // A Set keeps the order in which its members came.
  const byLastStep = new Set<Socket>();
  let [closed, reportedMs] = [0, Number.NEGATIVE_INFINITY];
  const step = (socket: Socket): void => {
    if (byLastStep.delete(socket)) byLastStep.add(socket);
  };
  const notify = (): void => {
    closed++;
    if (clock.nowMs() < reportedMs + QUIET_MS) return;
    const hint = "many clients that don't finish their requests? see who they are with ss -tn, and keep them away from the port";
    log.warn("too many connections: those that have asked for nothing for longest are closed", {
      address,
      most: CONNECTIONS_MAX,
      closed,
      hint,
    });
    [closed, reportedMs] = [0, clock.nowMs()];
  };
  server.on("connection", (socket: Socket) => {
    byLastStep.add(socket);
    socket.once("close", () => byLastStep.delete(socket));
    const [oldest] = byLastStep;
    if (byLastStep.size <= CONNECTIONS_MAX || oldest === undefined) return;
    byLastStep.delete(oldest);
    oldest.destroy();
    notify();
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    step(socket);
    response.once("finish", () => step(socket));
  });
}
