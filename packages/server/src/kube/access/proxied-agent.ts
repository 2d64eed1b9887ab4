import { once } from "node:events";
import type { Agent, ClientRequestArgs } from "node:http";
import https from "node:https";
import { connect, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { connect as connectTls } from "node:tls";
import { callbackify } from "node:util";
import { ProxyError, type Clock } from "@turnout/core";
import { bareHost, portOf } from "./proxy-rules.ts";
import { tunnelByHttp, tunnelBySocks } from "./proxy-tunnel.ts";
import { Watchdog } from "../watchdog.ts";

// Not by an import: see kube-client.ts.
const http = process.getBuiltinModule("node:http");

/** How an agent connects. */
export interface AgentRoute {
  readonly isTls: boolean;
  /** Of the agent, TLS material included. An https proxy is checked with the same material, as in Go. */
  readonly options: https.AgentOptions;
  /** Undefined: directly. */
  readonly proxy: URL | undefined;
  readonly clock: Clock;
  /** With a proxy: until a request can be sent, TLS with the server included. */
  readonly connectTimeoutMs: number;
}

/**
 * Make an agent. It reaches servers through the proxy, if there is one: by CONNECT of an HTTP proxy, or by SOCKS5.
 *
 * Edges: plain HTTP through an HTTP proxy has no tunnel, see {@link isForwarded}. Node's own `proxyEnv` is not used: Node 22 ignores it, and its rules are
 * not Go's.
 */
export function createAgent(route: AgentRoute): Agent {
  const { isTls, options, proxy } = route;
  const agent = isTls ? new https.Agent(options) : new http.Agent(options);
  if (proxy === undefined) return agent;
  const stop = new AbortController();
  const direct = agent.createConnection.bind(agent);
  const connectTo = callbackify((target: ClientRequestArgs) => reach(route, proxy, { target, direct, signal: stop.signal }));
  agent.createConnection = (target, done) => {
    if (done !== undefined) connectTo(target, done);
    return undefined;
  };
  const destroy = agent.destroy.bind(agent);
  agent.destroy = () => {
    stop.abort();
    destroy();
  };
  return agent;
}

/** Whether requests to a server are sent to the proxy as they are, with the whole URL in the place of the path. */
export function isForwarded(server: URL, proxy: URL | undefined): proxy is URL {
  return proxy !== undefined && server.protocol === "http:" && /^https?:$/.test(proxy.protocol);
}

interface Dialing {
  readonly target: ClientRequestArgs;
  /** The agent's own way to connect; over `socket` when that is given. */
  readonly direct: Agent["createConnection"];
  /** The agent is not used any more. */
  readonly signal: AbortSignal;
}

/** Connect to a server through its proxy, in bounded time. No socket is left when that fails. */
async function reach(route: AgentRoute, proxy: URL, { target, direct, signal }: Dialing): Promise<Socket> {
  const { keepAlive, keepAliveInitialDelay, lookup } = target as TcpNetConnectOpts;
  const first = connect({ host: bareHost(proxy), port: Number(portOf(proxy)), lookup, keepAlive, keepAliveInitialDelay, noDelay: true });
  const cut = (): void => void first.destroy(new Error("the connection is not needed any more"));
  const dog = new Watchdog(route.clock, route.connectTimeoutMs, () => {
    first.destroy(new ProxyError("timed_out", "the proxy gave no connection in time"));
  });
  signal.addEventListener("abort", cut);
  const failed = new Promise<never>((_resolve, reject) => {
    const object = `${proxy.protocol}//${proxy.host}`;
    first.on("error", (error) => reject(ProxyError.from(error, "feed_lost", "the connection to the proxy failed", { object })));
    first.on("close", () => reject(new Error("the proxy closed the connection")));
  });
  try {
    return await Promise.race([openThrough(route, proxy, first, { target, direct }), failed]);
  } catch (error) {
    first.destroy();
    throw error;
  } finally {
    dog.stop();
    signal.removeEventListener("abort", cut);
  }
}

async function openThrough(
  { isTls, options }: AgentRoute,
  proxy: URL,
  first: Socket,
  { target, direct }: Pick<Dialing, "target" | "direct">,
): Promise<Socket> {
  await once(first, "connect");
  const host = bareHost(proxy);
  const servername = isIP(host) === 0 ? host : "";
  const toProxy = proxy.protocol === "https:" ? await secured(connectTls({ ...options, socket: first, host, servername })) : first;
  const server = { host: target.host ?? "", port: Number(target.port) };
  if (proxy.protocol.startsWith("socks")) await tunnelBySocks(toProxy, proxy, server);
  else if (isTls) await tunnelByHttp(toProxy, proxy, server);
  return isTls ? secured(direct({ ...target, socket: toProxy } as ClientRequestArgs) as Socket) : toProxy;
}

async function secured(socket: Socket): Promise<Socket> {
  await once(socket, "secureConnect");
  return socket;
}
