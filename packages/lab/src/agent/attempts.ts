import { createSocket } from "node:dgram";
import { Agent as HttpAgent, get as httpGet } from "node:http";
import { connect } from "node:net";
import { attemptSctp } from "../raw/sctp-client.ts";
import { DEFAULT_TIMEOUT_MS, isFiltered, outcomeOf } from "./answer.ts";
import type { ServerReply, Attempt, GetRequest, GetResult, TargetRequest } from "./protocol.ts";
import { afterSilence } from "./silence.ts";

/** Reach a target once. @throws {Error} for a caller's mistake, such as a `fromAddress` that is not here. */
export async function attempt(request: TargetRequest, keepAlive?: HttpAgent): Promise<Attempt> {
  const startedMs = performance.now();
  const { outcome, ...rest } = await ATTEMPT[request.transport ?? "TCP"](request, keepAlive);
  return { outcome, latencyMs: performance.now() - startedMs, ...rest };
}

type Result = Omit<Attempt, "latencyMs">;

const ATTEMPT: Readonly<
  Record<NonNullable<TargetRequest["transport"]>, (request: TargetRequest, keepAlive?: HttpAgent) => Promise<Result>>
> = {
  TCP: attemptTcp,
  UDP: attemptUdp,
  HTTP: attemptHttp,
  SCTP: attemptSctp,
};

/** Make the connection pool of one load of HTTP requests. */
export function createKeepAlive(): HttpAgent {
  return new HttpAgent({ keepAlive: true, maxSockets: 256 });
}

function attemptTcp(request: TargetRequest): Promise<Result> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: request.address, port: request.port, ...from(request) });
    let text = "";
    const finish = (result: Result): void => {
      stopWaiting();
      resolve(result);
    };
    const stopWaiting = afterSilence(request.timeoutMs ?? DEFAULT_TIMEOUT_MS, () => {
      finish({ outcome: "timeout" });
      socket.destroy();
    });
    let local: Pick<Result, "localAddress" | "localPort"> = {};
    socket.on("connect", () => {
      local = { localAddress: socket.localAddress ?? "", localPort: socket.localPort ?? 0 };
      socket.write("once\n");
    });
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.endsWith("\n")) finish({ outcome: "ok", ...local, ...(JSON.parse(text) as ServerReply) });
    });
    socket.on("error", (error) => {
      const outcome = outcomeOf(error);
      stopWaiting();
      if (outcome === undefined) reject(error);
      else resolve({ outcome, ...local });
    });
    socket.on("close", () => finish({ outcome: "closed", ...local }));
  });
}

function attemptUdp(request: TargetRequest): Promise<Result> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(request.address.includes(":") ? "udp6" : "udp4");
    let local: Pick<Result, "localAddress" | "localPort"> = {};
    let isFinished = false;
    const finish = (act: () => void): void => {
      if (isFinished) return;
      isFinished = true;
      stopWaiting();
      socket.close();
      act();
    };
    const stopWaiting = afterSilence(request.timeoutMs ?? DEFAULT_TIMEOUT_MS, () =>
      finish(() => resolve({ outcome: "timeout", ...local })),
    );
    const failed = (error: Error | null): void => {
      // The host's own filter stopped the datagram: rejected, if an ICMP error follows, else dropped.
      if (error === null || isFiltered(error)) return;
      const outcome = outcomeOf(error);
      finish(() => (outcome === undefined ? reject(error) : resolve({ outcome, ...local })));
    };
    socket.on("error", failed);
    socket.on("message", (message) =>
      finish(() => resolve({ outcome: "ok", ...local, ...(JSON.parse(message.toString()) as ServerReply) })),
    );
    socket.bind({ port: request.fromPort ?? 0, ...(request.fromAddress === undefined ? {} : { address: request.fromAddress }) }, () => {
      // Connected, so that an ICMP port unreachable comes back as ECONNREFUSED; without a callback, so that a failure is an error event.
      socket.once("connect", () => {
        const { address, port } = socket.address();
        local = { localAddress: address, localPort: port };
        socket.send("once", failed);
      });
      socket.connect(request.port, request.address);
    });
  });
}

async function attemptHttp(request: TargetRequest, keepAlive?: HttpAgent): Promise<Result> {
  const { outcome, body } = await getOnce({ ...request, path: "/" }, keepAlive, from(request));
  return outcome === "ok" ? { outcome, ...(JSON.parse(body) as ServerReply) } : { outcome };
}

/** One HTTP GET; every status is an outcome `ok`. @throws {Error} for a caller's mistake. */
export function getOnce(
  request: GetRequest,
  keepAlive?: HttpAgent,
  options: { readonly localAddress?: string; readonly localPort?: number } = {},
): Promise<GetResult> {
  return new Promise((resolve, reject) => {
    const nothing = { status: 0, headers: {}, body: "" };
    const outgoing = httpGet(
      { host: request.address, port: request.port, path: request.path, agent: keepAlive ?? false, ...options },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.on("error", failed);
        response.on("end", () => {
          stopWaiting();
          const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
          resolve({ outcome: "ok", status: response.statusCode ?? 0, headers, body });
        });
      },
    );
    const failed = (error: Error): void => {
      stopWaiting();
      // Node's word for a connection that ended without a response is ECONNRESET too, but with this text.
      const outcome = error.message === "socket hang up" ? "closed" : outcomeOf(error);
      if (outcome === undefined) reject(error);
      else resolve({ outcome, ...nothing });
    };
    const stopWaiting = afterSilence(request.timeoutMs ?? DEFAULT_TIMEOUT_MS, () => {
      resolve({ outcome: "timeout", ...nothing });
      outgoing.destroy();
    });
    outgoing.on("error", failed);
  });
}

function from(request: TargetRequest): { readonly localAddress?: string; readonly localPort?: number } {
  return {
    ...(request.fromAddress === undefined ? {} : { localAddress: request.fromAddress }),
    ...(request.fromPort === undefined ? {} : { localPort: request.fromPort }),
  };
}
