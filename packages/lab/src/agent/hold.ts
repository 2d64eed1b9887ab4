import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { ProxyError } from "@turnout/core/backend";
import { eachLine } from "./lines.ts";
import type { HoldRequest, HoldStatus, ServerReply } from "./protocol.ts";

/** A connection that is kept. */
export interface Held {
  status(): HoldStatus;
  release(): HoldStatus;
}

/** What is heard of a connection. */
interface Listener {
  answered(text: string): void;
  /** Nothing comes any more; `error`: what ended it. */
  ended(error?: Error): void;
}

/** A connection, whatever it is made of. */
interface Connection {
  ask(): void;
  close(): void;
}

/** Open a connection and ask over it every `everyMs`. @throws {ProxyError} `tool_failed` when it can't be opened. */
export async function hold(request: HoldRequest): Promise<Held> {
  let state: HoldStatus["state"] = "open";
  let answers = 0;
  let late = 0;
  let asked = 0;
  let asks = 0;
  let reply: Pick<ServerReply, "server" | "client"> = { server: "", client: "" };
  let timer: NodeJS.Timeout | undefined;
  const first = Promise.withResolvers<void>();
  const fail = (cause?: Error): void =>
    first.reject(new ProxyError("tool_failed", "opening a connection to keep", { object: `${request.address} ${request.port}`, cause }));
  const connection = OPEN[request.transport === "UDP" ? "UDP" : "TCP"](request, {
    answered: (text) => {
      answers += 1;
      reply = JSON.parse(text) as ServerReply;
      first.resolve();
    },
    ended: (error) => {
      clearInterval(timer);
      if (state === "open") state = error === undefined ? "closed" : "reset";
      fail(error);
    },
  });
  const ask = (): void => {
    if (answers < asked) late += 1;
    asked = answers + 1;
    asks += 1;
    connection.ask();
  };
  const giveUp = setTimeout(() => fail(new Error("timed out")), request.timeoutMs ?? 2_000);
  try {
    timer = setInterval(ask, request.everyMs);
    ask();
    await first.promise;
  } catch (error) {
    clearInterval(timer);
    connection.close();
    throw error;
  } finally {
    clearTimeout(giveUp);
  }
  const status = (): HoldStatus => ({ state, asks, answers, late, server: reply.server, client: reply.client });
  return {
    status,
    release: () => {
      const last = status();
      clearInterval(timer);
      connection.close();
      return last;
    },
  };
}

const OPEN: Readonly<Record<"TCP" | "UDP", (request: HoldRequest, listener: Listener) => Connection>> = {
  TCP: ({ address, port, fromAddress, fromPort }, { answered, ended }) => {
    const socket = connect({
      host: address,
      port,
      ...(fromAddress === undefined ? {} : { localAddress: fromAddress }),
      ...(fromPort === undefined ? {} : { localPort: fromPort }),
    });
    eachLine(socket, answered);
    socket.on("error", ended).on("close", () => ended());
    return { ask: () => void socket.write("ask\n"), close: () => void socket.destroy() };
  },
  UDP: ({ address, port, fromAddress, fromPort = 0 }, { answered, ended }) => {
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    let isConnected = false;
    let isClosed = false;
    const close = (): void => {
      if (!isClosed) socket.close();
      isClosed = true;
    };
    const fail = (error: Error): void => {
      isConnected = false;
      ended(error);
      close();
    };
    const ask = (): void => {
      if (isConnected) socket.send("ask", (error) => error !== null && !isClosed && fail(error));
    };
    socket.on("error", fail).on("message", (message) => answered(message.toString()));
    socket.bind({ port: fromPort, ...(fromAddress === undefined ? {} : { address: fromAddress }) }, () => {
      socket.once("connect", () => {
        isConnected = true;
        ask();
      });
      socket.connect(port, address);
    });
    return { ask, close };
  },
};
