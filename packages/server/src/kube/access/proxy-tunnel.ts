import { once } from "node:events";
import { isIP, type Socket } from "node:net";
import { parseIP, ProxyError } from "@turnout/core";

// Not by an import: see kube-client.ts.
const http = process.getBuiltinModule("node:http");

/** A server and the login that its proxy asks for. */
export interface TunnelTarget {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Value of Proxy-Authorization by the user and password of a proxy's address; undefined: it has none. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")}`;
}

/** Ask the HTTP proxy at the other end of `socket` for a tunnel (CONNECT). Resolves when bytes pass. @throws {ProxyError} `feed_lost`. */
export function tunnelByHttp(socket: Socket, proxy: URL, { host, port }: TunnelTarget): Promise<void> {
  const path = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const authorization = proxyAuthorization(proxy);
  const headers = { host: path, ...(authorization === undefined ? {} : { "proxy-authorization": authorization }) };
  const request = http.request({ method: "CONNECT", path, headers, createConnection: () => socket });
  return new Promise((resolve, reject) => {
    request.on("connect", ({ statusCode = 0, statusMessage = "" }, _socket, head) => {
      if (head.length > 0) socket.unshift(head);
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(refused(proxy, `it answered ${statusCode} ${statusMessage}`.trim()));
    });
    request.on("error", reject);
    request.on("close", () => reject(refused(proxy, "it closed the connection")));
    request.end();
  });
}

/** SOCKS versions, methods and types of addresses: RFC 1928 and 1929. */
const SOCKS = { version: 5, noLogin: 0, password: 2, passwordVersion: 1, connect: 1, ipv4: 1, name: 3, ipv6: 4 } as const;

const SOCKS_ERRORS = [
  "",
  "general failure",
  "not allowed by its rules",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

/** Ask the SOCKS5 proxy at the other end of `socket` for a tunnel; it looks names up. Resolves when bytes pass; it waits for ever for one that is silent or closes the connection. @throws {ProxyError} `feed_lost`. */
export async function tunnelBySocks(socket: Socket, proxy: URL, { host, port }: TunnelTarget): Promise<void> {
  const { version, noLogin, password } = SOCKS;
  const hasLogin = proxyAuthorization(proxy) !== undefined;
  socket.write(Buffer.from(hasLogin ? [version, 2, noLogin, password] : [version, 1, noLogin]));
  const [spoken, method] = await readExactly(socket, 2);
  if (spoken !== version) throw refused(proxy, "it does not speak SOCKS5");
  if (method === password && hasLogin) await login(socket, proxy);
  else if (method !== noLogin) throw refused(proxy, "it takes no login that the proxy's address has");
  socket.write(Buffer.concat([Buffer.from([version, SOCKS.connect, 0]), socksAddress(proxy, host), bigEndian(port)]));
  const [, code = 0, , type] = await readExactly(socket, 4);
  if (code !== 0) throw refused(proxy, `${host}:${port}: ${SOCKS_ERRORS[code] ?? `error ${code}`}`);
  // The address that the proxy uses itself, and its port.
  const bytes = type === SOCKS.ipv4 ? 4 : type === SOCKS.ipv6 ? 16 : ((await readExactly(socket, 1))[0] ?? 0);
  await readExactly(socket, bytes + 2);
}

async function login(socket: Socket, proxy: URL): Promise<void> {
  const [name, secret] = [proxy.username, proxy.password].map((text) => withLength(proxy, decodeURIComponent(text)));
  socket.write(Buffer.concat([Buffer.from([SOCKS.passwordVersion]), name ?? Buffer.alloc(0), secret ?? Buffer.alloc(0)]));
  const [, status] = await readExactly(socket, 2);
  if (status !== 0) throw refused(proxy, "it refused the user or password");
}

function socksAddress(proxy: URL, host: string): Buffer {
  const ip = parseIP(host);
  if (ip === undefined) return Buffer.concat([Buffer.from([SOCKS.name]), withLength(proxy, host)]);
  const digits = ip.family === "IPv4" ? 8 : 32;
  const value = Buffer.from(ip.value.toString(16).padStart(digits, "0"), "hex");
  return Buffer.concat([Buffer.from([ip.family === "IPv4" ? SOCKS.ipv4 : SOCKS.ipv6]), value]);
}

function withLength(proxy: URL, text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 255) throw refused(proxy, "a name, user or password has more than 255 bytes");
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function bigEndian(port: number): Buffer {
  return Buffer.from([port >> 8, port & 0xff]);
}

/** Read exactly so many bytes; what follows them stays in the socket. It waits for ever when the socket ends before. */
export async function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let left = bytes; left > 0;) {
    // Nothing stays unread before a wait: a listener that is added while bytes are there is called at once.
    const part = socket.read(Math.min(left, socket.readableLength)) as Buffer | null;
    if (part === null) await once(socket, "readable");
    else parts.push(part);
    left -= part?.length ?? 0;
  }
  return Buffer.concat(parts);
}

function refused(proxy: URL, why: string): ProxyError {
  return new ProxyError("feed_lost", `the proxy made no connection: ${why}`, { object: `${proxy.protocol}//${proxy.host}` });
}
