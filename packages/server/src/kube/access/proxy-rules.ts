import { domainToASCII } from "node:url";
import { cidrContains, parseCIDR, parseIP, ProxyError, type IP } from "@turnout/core";

/** Variables of an environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is asked whether it is reached without a proxy. */
interface Target {
  /** In lower case, without brackets. */
  readonly host: string;
  readonly port: string;
  /** Of an address; undefined: `host` is a name. */
  readonly ip: IP | undefined;
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"] as const;

/**
 * Choose the proxy of a server by HTTPS_PROXY or HTTP_PROXY (by the server's scheme) and NO_PROXY, or their names in lower case, as Go's programs do.
 *
 * Edges: `localhost` and loopback addresses have none. An unreadable proxy address counts as none, an unreadable entry of NO_PROXY matches nothing.
 * @throws {ProxyError} `invalid_object` for a proxy of another kind than {@link isUsableProxy} says.
 * @source golang.org/x/net v0.57.0 http/httpproxy, which client-go uses; its rule for CGI programs has no meaning here
 */
export function proxyFromEnvironment(server: URL, env: Environment): URL | undefined {
  const variable = (of: string): string => [env[of], env[of.toLowerCase()]].find((value) => value !== undefined && value !== "") ?? "";
  const name = server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const proxy = proxyAddress(variable(name));
  if (proxy === undefined) return undefined;
  const host = bareHost(server);
  const target = { host, port: portOf(server), ip: parseIP(host) };
  if (host === "localhost" || LOOPBACK.some((range) => isInCidr(range, target))) return undefined;
  if (isExcepted(variable("NO_PROXY"), target)) return undefined;
  if (isUsableProxy(proxy)) return proxy;
  const object = `${proxy.protocol}//${proxy.host}`;
  throw new ProxyError("invalid_object", `${name} names a proxy of an unknown kind`, {
    object,
    hint: "write http://, https:// or socks5://",
  });
}

/** Whether it speaks HTTP (also over TLS) or SOCKS5. */
export function isUsableProxy({ protocol }: URL): boolean {
  return /^(?:https?|socks5h?):$/.test(protocol);
}

/** Read a proxy's address; one without a scheme is of an HTTP proxy. Undefined: there is none, or it is unreadable. */
export function proxyAddress(text: string): URL | undefined {
  if (text === "") return undefined;
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(whole)) return undefined;
  const url = new URL(whole);
  return [url.username, url.password].every(isDecodable) ? url : undefined;
}

/** The host of a URL as programs take it: an IPv6 address without brackets. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

/** The port of a URL, the scheme's own when it names none. */
export function portOf(url: URL): string {
  const known: Readonly<Record<string, string>> = { "http:": "80", "https:": "443", "socks5:": "1080", "socks5h:": "1080" };
  return url.port === "" ? (known[url.protocol] ?? "") : url.port;
}

function isExcepted(noProxy: string, target: Target): boolean {
  return noProxy.split(",").some((entry) => matches(entry.trim().toLowerCase(), target));
}

function matches(entry: string, target: Target): boolean {
  if (entry === "*") return true;
  if (entry.includes("/") && parseCIDR(entry) !== undefined) return isInCidr(entry, target);
  const { host, port } = splitPort(entry);
  if (host === "" || (port !== "" && port !== target.port)) return false;
  const ip = parseIP(host);
  if (ip !== undefined || target.ip !== undefined) return ip?.text === target.ip?.text;
  return isOfDomain(host, target.host);
}

/** `example.com` stands for itself and all below it, `.example.com` and `*.example.com` only for what is below. */
function isOfDomain(entry: string, host: string): boolean {
  const isBelowOnly = /^\*?\./.test(entry);
  const name = entry.replace(/^\*?\./, "");
  const domain = domainToASCII(name) || name;
  return host.endsWith(`.${domain}`) || (!isBelowOnly && host === domain);
}

function isInCidr(range: string, { ip }: Target): boolean {
  const cidr = parseCIDR(range);
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
}

/** An IPv6 address has brackets when a port follows, and none otherwise. */
function splitPort(entry: string): { readonly host: string; readonly port: string } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):([^:]*)$/.exec(entry) ?? [];
  return { host: bracketed ?? plain ?? entry, port: port ?? "" };
}

function isDecodable(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}
