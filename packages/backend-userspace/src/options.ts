import { canonicalIP } from "@turnout/core";
import type { TrafficOptions } from "@turnout/client/sockets";
import { ProxyError, hostPort, listOption, numberOption, wordOption } from "@turnout/core/backend";
import type { IPFamily, OptionOf, OptionsOf, Plain, Protocol } from "@turnout/core/backend";

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

/** The longest a timer of Node's can be set to, in whole seconds. */
const SECONDS_MAX = 2_147_483;

/** The options by name; see docs/backends/userspace.md for each. */
export const USERSPACE_OPTIONS: OptionsOf<UserspaceOptions> = {
  ownAddresses: wordOption("own-addresses", [true, false, "auto"], "auto"),
  map: textsOption("map", mapEntry),
  endpointMap: endpointMapOption("endpoint-map"),
  balance: wordOption("balance", ["random", "round-robin"], "random"),
  proxyProtocol: wordOption("proxy-protocol", ["v1", "v2"], undefined),
  proxyProtocolFor: textsOption("proxy-protocol-for", (one) => one),
  drainSeconds: secondsOption("drain-timeout", 0),
  dialSeconds: secondsOption("dial-timeout", 5, 0.001),
  tcpIdleSeconds: secondsOption("tcp-idle-timeout", 0),
  udpIdleSeconds: secondsOption("udp-idle-timeout", 60, 0.001),
  maxConnections: limitOption("max-connections"),
  maxConnectionsPerListener: limitOption("max-connections-per-listener"),
  maxUdpSessions: limitOption("max-udp-sessions"),
};

/** Check options that depend on one another. @throws {ProxyError} `invalid_object` naming the option. */
export function settleUserspaceOptions(options: UserspaceOptions): UserspaceOptions {
  const { proxyProtocol, proxyProtocolFor, map } = options;
  if ((proxyProtocol === undefined) !== (proxyProtocolFor.length === 0))
    throw bad("proxy-protocol", "it goes together with proxy-protocol-for", "e.g. proxy-protocol=v2 proxy-protocol-for=shop/cart:http");
  const locals = map.map(({ local, protocol }) => `${protocol ?? ""} ${hostPort(local.ip, local.port)}`);
  const twice = locals.find((text, index) => locals.indexOf(text) !== index);
  if (twice !== undefined) throw bad("map", `two destinations at${twice}`, "give each a port of its own");
  return options;
}

function secondsOption(name: string, otherwise: number, min = 0): OptionOf<number> {
  return numberOption(name, otherwise, { min, max: SECONDS_MAX });
}

function limitOption(name: string): OptionOf<number> {
  return numberOption(name, 10_000, { min: 1, isWhole: true });
}

/** Blank texts are left out. */
function textsOption<T>(name: string, one: (text: string) => T | undefined): OptionOf<readonly T[]> {
  const option = listOption(name, "a text", one);
  const trimmed = (text: Plain): Plain => (typeof text === "string" ? text.trim() : text);
  const read = (value: Plain): readonly T[] | undefined =>
    option.read(Array.isArray(value) ? value.map(trimmed).filter((text) => text !== "") : value, name);
  return { ...option, read };
}

function endpointMapOption(name: string): OptionOf<UserspaceOptions["endpointMap"]> {
  const { read, ...option } = textsOption(name, endpointEntry);
  const asMap = (found: ReturnType<typeof read>): UserspaceOptions["endpointMap"] | undefined => found && new Map(found);
  return { ...option, otherwise: new Map(), read: (value) => asMap(read(value, name)) };
}

function bad(name: string, what: string, hint: string): ProxyError {
  return new ProxyError("invalid_object", what, { object: `userspace option ${name}`, hint });
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
