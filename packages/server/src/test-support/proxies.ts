import { once } from "node:events";
import http from "node:http";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { onTestFinished } from "vitest";
import { readExactly } from "../kube/access/proxy-tunnel.ts";

/** How a proxy under test is made. */
export interface TestProxyOptions {
  readonly kind: "http" | "socks5";
  /** `user:password` that it asks for. */
  readonly login?: string;
  /** Speak TLS to clients. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Take connections and say nothing. */
  readonly isSilent?: boolean;
}

/** A real proxy on loopback, which notes what it is asked for. The name `api.lab` is 127.0.0.1. */
export interface TestProxy {
  readonly url: string;
  /** `CONNECT api.lab:6443`, `GET http://api.lab:8080/path`, `SOCKS api.lab:6443`; `refused` for a wrong login. */
  readonly asked: readonly string[];
  /** Clients' connections that are open now. */
  readonly connections: number;
}

/** Start a proxy, which ends with the test. */
export async function startProxy(options: TestProxyOptions): Promise<TestProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const serve =
    options.kind === "http"
      ? httpListener(options, asked)
      : (socket: Socket): void => {
          // A client that breaks off is what some tests are about.
          serveSocks(socket, options, asked).catch(() => socket.destroy());
        };
  const listener = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    if (options.isSilent === true) socket.resume();
    else serve(socket);
  };
  const server: Server = options.tls === undefined ? createServer(listener) : createTlsServer(options.tls, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const scheme = options.kind === "socks5" ? "socks5" : options.tls === undefined ? "http" : "https";
  return {
    url: `${scheme}://${options.login === undefined ? "" : `${options.login.split(":").map(encodeURIComponent).join(":")}@`}127.0.0.1:${port}`,
    asked,
    get connections() {
      return sockets.size;
    },
  };
}

function httpListener({ login }: TestProxyOptions, asked: string[]): (socket: Socket) => void {
  const isWelcome = ({ headers }: http.IncomingMessage): boolean =>
    login === undefined || headers["proxy-authorization"] === `Basic ${Buffer.from(login).toString("base64")}`;
  const server = http.createServer((request, response) => {
    asked.push(isWelcome(request) ? `${request.method} ${request.url?.split("?")[0]}` : "refused");
    if (!isWelcome(request)) return response.writeHead(407).end();
    const { pathname, search, port } = new URL(request.url ?? "");
    const { "proxy-authorization": _login, ...headers } = request.headers;
    const onward = http.request({ host: "127.0.0.1", port, path: pathname + search, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    return request.pipe(onward);
  });
  server.on("connect", (request: http.IncomingMessage, client: Socket) => {
    asked.push(isWelcome(request) ? `CONNECT ${request.url}` : "refused");
    if (!isWelcome(request)) return client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const [host = "", port = ""] = request.url?.split(":") ?? [];
    return join(client, host, Number(port), () => client.write("HTTP/1.1 200 Connection established\r\n\r\n"));
  });
  return (socket) => void server.emit("connection", socket);
}

/** RFC 1928 and 1929, the parts for CONNECT. */
async function serveSocks(client: Socket, { login }: TestProxyOptions, asked: string[]): Promise<void> {
  const closed = new Promise<never>((_resolve, reject) => client.on("close", () => reject(new Error("closed"))));
  const take = (bytes: number): Promise<Buffer> => Promise.race([readExactly(client, bytes), closed]);
  const text = async (): Promise<string> => (await take((await take(1))[0] ?? 0)).toString();
  const [, methods = 0] = await take(2);
  const wanted = login === undefined ? 0 : 2;
  const hasMethod = (await take(methods)).includes(wanted);
  client.write(Buffer.from([5, hasMethod ? wanted : 255]));
  if (login !== undefined && hasMethod) {
    await take(1);
    const isRight = `${await text()}:${await text()}` === login;
    client.write(Buffer.from([1, isRight ? 0 : 1]));
    if (!isRight) return void asked.push("refused");
  }
  const type = (await take(4))[3];
  const host = type === 3 ? await text() : [...(await take(type === 1 ? 4 : 16))].join(type === 1 ? "." : ",");
  const port = (await take(2)).readUInt16BE();
  asked.push(`SOCKS ${host}:${port}`);
  const reply = (code: number): Buffer => Buffer.from([5, code, 0, 1, 127, 0, 0, 1, 0, 0]);
  join(client, host, port, () => client.write(reply(0)), reply(5));
}

function join(client: Socket, host: string, port: number, onConnected: () => void, refusal?: Buffer): void {
  const upstream = connect(port, host === "api.lab" ? "127.0.0.1" : host, () => {
    onConnected();
    upstream.pipe(client).pipe(upstream);
  });
  // Either end may break off when a test is over.
  upstream.on("error", () => client.end(refusal ?? ""));
  client.on("close", () => upstream.destroy());
}
