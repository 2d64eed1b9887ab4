import { canonicalIP } from "@turnout/core";
import type { TrafficOptions } from "@turnout/client/sockets";
import { ProxyError, hostPort, refuseUnknownOptions } from "@turnout/core/backend";
import type { IPFamily, OptionKinds, Plain, Protocol } from "@turnout/core/backend";

/** A destination that is answered at an address of this host: by its address and port, or by the name of the service port. */
export interface MapEntry {
  /** `10.96.0.20:80` or `shop/cart:http` (`shop/cart` for a port without a name). */
  readonly target: string;
  /** Undefined: whatever protocols it has. */
  readonly protocol: Protocol | undefined;
  readonly local: { readonly ip: string; readonly port: number; readonly family: IPFamily };
}

/** What this backend can be told, as typed: where it answers, and how traffic is carried. */
export interface UserspaceOptions extends TrafficOptions {
  /** Take cluster, external and load-balancer addresses on a device of ours; `auto`: where it is permitted and nothing is mapped. */
  readonly ownAddresses: boolean | "auto";
  readonly map: readonly MapEntry[];
  readonly proxyProtocol: "v1" | "v2" | undefined;
  /** Service ports whose endpoints are told who the client is: `shop/cart:http` or `*`. */
  readonly proxyProtocolFor: readonly string[];
}

type Raw = Readonly<Record<string, Plain>>;

const NUMBERS = {
  "drain-timeout": { fallback: 0, min: 0 },
  "dial-timeout": { fallback: 5, min: 0.001 },
  "tcp-idle-timeout": { fallback: 0, min: 0 },
  "udp-idle-timeout": { fallback: 60, min: 0.001 },
  "max-connections": { fallback: 10_000, min: 1 },
  "max-connections-per-listener": { fallback: 10_000, min: 1 },
  "max-udp-sessions": { fallback: 10_000, min: 1 },
} as const;
/** What {@link parseUserspaceOptions} takes. */
export const USERSPACE_OPTIONS: OptionKinds = {
  "own-addresses": "any",
  map: "list",
  "endpoint-map": "list",
  balance: "text",
  "proxy-protocol": "text",
  "proxy-protocol-for": "list",
  ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, "number"] as const)),
};
/** The longest a timer of Node's can be set to, in whole seconds. */
const SECONDS_MAX = 2_147_483;

/**
 * Check options given by name; see docs/backends/userspace.md for each.
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseUserspaceOptions(raw: Raw): UserspaceOptions {
  refuseUnknownOptions("userspace", USERSPACE_OPTIONS, raw);
  const proxyProtocol = oneOf(raw, "proxy-protocol", ["v1", "v2"] as const);
  const proxyProtocolFor = listOf(raw, "proxy-protocol-for");
  if ((proxyProtocol === undefined) !== (proxyProtocolFor.length === 0))
    throw bad("proxy-protocol", "it goes together with proxy-protocol-for", "e.g. proxy-protocol=v2 proxy-protocol-for=shop/cart:http");
  return {
    ownAddresses: ownAddresses(raw["own-addresses"] ?? "auto"),
    map: mapEntries(listOf(raw, "map")),
    endpointMap: new Map(listOf(raw, "endpoint-map").map(endpointEntry)),
    balance: oneOf(raw, "balance", ["random", "round-robin"] as const) ?? "random",
    drainSeconds: numberOf(raw, "drain-timeout"),
    dialSeconds: numberOf(raw, "dial-timeout"),
    tcpIdleSeconds: numberOf(raw, "tcp-idle-timeout"),
    udpIdleSeconds: numberOf(raw, "udp-idle-timeout"),
    maxConnections: numberOf(raw, "max-connections"),
    maxConnectionsPerListener: numberOf(raw, "max-connections-per-listener"),
    maxUdpSessions: numberOf(raw, "max-udp-sessions"),
    proxyProtocol,
    proxyProtocolFor,
  };
}

function bad(name: string, what: string, hint?: string): ProxyError {
  return new ProxyError("invalid_object", what, { object: `userspace option ${name}`, ...(hint === undefined ? {} : { hint }) });
}

function ownAddresses(value: Plain): boolean | "auto" {
  if (typeof value === "boolean" || value === "auto") return value;
  throw bad("own-addresses", "it must be true, false or auto");
}

function oneOf<T extends string>(raw: Raw, name: string, words: readonly T[]): T | undefined {
  const value = raw[name];
  if (value === undefined) return undefined;
  const found = words.find((word) => word === value);
  if (found === undefined) throw bad(name, `it must be ${words.join(" or ")}`);
  return found;
}

function numberOf(raw: Raw, name: keyof typeof NUMBERS): number {
  const { fallback, min } = NUMBERS[name];
  const value = raw[name] ?? fallback;
  const isCount = name.startsWith("max-");
  if (typeof value !== "number" || value < min || (isCount && !Number.isInteger(value))) throw bad(name, `it must be a number from ${min}`);
  if (!isCount && value > SECONDS_MAX) throw bad(name, `it must be at most ${SECONDS_MAX} seconds`);
  return value;
}

function listOf(raw: Raw, name: string): readonly string[] {
  const texts = raw[name] ?? [];
  if (!Array.isArray(texts)) throw bad(name, "it must be a list");
  return texts.flatMap((text: Plain) => {
    if (typeof text !== "string") throw bad(name, "it must be a list of texts");
    return text.trim() === "" ? [] : [text.trim()];
  });
}

function mapEntries(texts: readonly string[]): readonly MapEntry[] {
  const entries = texts.map(mapEntry);
  const locals = entries.map(({ local, protocol }) => `${protocol ?? ""} ${hostPort(local.ip, local.port)}`);
  const twice = locals.find((text, index) => locals.indexOf(text) !== index);
  if (twice !== undefined) throw bad("map", `two destinations at${twice}`, "give each a port of its own");
  return entries;
}

function mapEntry(text: string): MapEntry {
  const hint = "e.g. shop/cart:http=127.0.0.1:8080 or 10.96.0.20:80=127.0.0.1:8080, with /UDP before the = for one protocol";
  const [left = "", right = "", more] = text.split("=");
  const local = addressAndPort(right);
  const [, target = "", protocol] = /^(.+?)(?:\/(TCP|UDP))?$/i.exec(left) ?? [];
  if (more !== undefined || local === undefined || target === "") throw bad("map", `${JSON.stringify(text)} is no map`, hint);
  const asked = addressAndPort(target);
  if (asked === undefined && !/^[^/:=]+\/[^/:=]+(:[^/:=]+)?$/.test(target))
    throw bad("map", `${JSON.stringify(target)} names no service port`, hint);
  return {
    target: asked === undefined ? target : hostPort(asked.ip, asked.port),
    protocol: protocol?.toUpperCase() as Protocol | undefined,
    local,
  };
}

function endpointEntry(text: string): readonly [string, MapEntry["local"]] {
  const [left = "", right = "", more] = text.split("=");
  const [from, to] = [addressAndPort(left), addressAndPort(right)];
  if (from === undefined || to === undefined || more !== undefined)
    throw bad("endpoint-map", `${JSON.stringify(text)} is no map`, "e.g. 10.1.1.5:8080=127.0.0.1:9001");
  return [hostPort(from.ip, from.port), to];
}

function addressAndPort(text: string): MapEntry["local"] | undefined {
  const [, bracketed, plain, portText = ""] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const ip = canonicalIP(bracketed ?? plain ?? "");
  const port = Number(portText);
  if (ip === undefined || port < 1 || port > 65_535) return undefined;
  return { ip: ip.text, port, family: ip.family };
}
