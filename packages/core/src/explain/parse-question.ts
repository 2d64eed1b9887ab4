import { canonicalIP } from "../model/addresses.ts";
import type { IPFamily, Protocol } from "../model/api-objects.ts";
import { ProxyError } from "../model/errors.ts";
import { isDNSName } from "../model/names.ts";

/** What was typed. */
export interface TypedQuestion {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  /** The device that the packet comes in by; undefined: the one that answers would leave by. */
  readonly in?: string;
}

/** A question, read: the sender is an address, or this host itself. */
export interface ParsedQuestion {
  /** An address, or `host`. */
  readonly from: string;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly family: IPFamily;
}

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** Address, port, protocol; neither has to be one. */
const TARGET = /^\[?([^\]]*)\]?:([^:/\]]*)(?:\/(\w+))?$/;

/** Read FROM TO:PORT. Pure. @throws {ProxyError} `invalid_object` naming what can't be read. */
export function parseQuestion({ from, to, protocol }: TypedQuestion): ParsedQuestion {
  const [, address = "", portText = "", said = protocol] = TARGET.exec(to) ?? [];
  const destination = canonicalIP(address);
  const port = /^\d+$/.test(portText) ? Number(portText) : 0;
  if (destination === undefined || port < 1 || port > 65_535) {
    const { what, hint } = wrongTarget(from, to);
    throw new ProxyError("invalid_object", `TO: ${what}`, { object: to, hint });
  }
  const known = PROTOCOLS.find((one) => one === said.toUpperCase());
  if (known === undefined) throw new ProxyError("invalid_object", "unknown protocol", { object: said, hint: "use tcp, udp or sctp" });
  const source = from === "host" ? "host" : canonicalIP(from)?.text;
  if (source === undefined)
    throw new ProxyError("invalid_object", "FROM: no address of a client", {
      object: from,
      hint: "write the client's IP address, e.g. a pod's, or host for this node itself",
    });
  return { from: source, destination: destination.text, port, protocol: known, family: destination.family };
}

/** Say what is wrong with a destination that can't be read, and what was probably meant. */
function wrongTarget(from: string, to: string): { readonly what: string; readonly hint: string } {
  const isWithoutPort = to === "host" || canonicalIP(to) !== undefined;
  if (isWithoutPort && canonicalIP(from) === undefined && canonicalIP(TARGET.exec(from)?.[1] ?? "") !== undefined)
    return { what: "no port", hint: `swapped? FROM comes first: turnout why ${to} ${from}` };
  const named = serviceNamed(to);
  if (named !== undefined)
    return {
      what: "a name is no address",
      hint: `write the Service's address: kubectl get service -n ${named.namespace} ${named.name}`,
    };
  if (isWithoutPort) return { what: "no port", hint: `write it behind the address: ${to.includes(":") ? `[${to}]` : to}:80` };
  const [, address = "", port = ""] = TARGET.exec(to) ?? [];
  if (canonicalIP(address) !== undefined) return wrongPort(address, port);
  // What has digits and dots alone is an address that was mistyped.
  if (isDNSName(address) && /[a-z]/i.test(address))
    return {
      what: "a name is no address",
      hint: address.includes(".")
        ? `write the address that it has: getent ahosts ${address}`
        : `write the Service's cluster IP (kubectl get service -n NAMESPACE ${address}), or NAMESPACE/${address}: the running proxy then names the addresses`,
    };
  return { what: "no address and port", hint: "write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp" };
}

function wrongPort(address: string, port: string): { readonly what: string; readonly hint: string } {
  if (port === "") return { what: "no port", hint: "write its number behind the colon" };
  if (/^\d+$/.test(port)) return { what: `port ${port} is out of range`, hint: "ports are 1 to 65535" };
  return {
    what: `${port} is no number of a port`,
    hint: `packets have no names of ports: write its number (kubectl get services -A | grep -wF ${address} shows the Service's ports)`,
  };
}

/** Read `shop/cart:http` or `cart.shop.svc:80` as a Service's name; undefined: it is none. Pure. */
export function serviceNamed(to: string): { readonly namespace: string; readonly name: string } | undefined {
  const [plain = ""] = to.split(":");
  const [, namespace, name] = /^([^/]+)\/([^/]+)$/.exec(plain) ?? [];
  const [, host, domain] = /^([^./]+)\.([^./]+)\.svc(?:\..*)?$/.exec(plain) ?? [];
  const found = { namespace: namespace ?? domain ?? "", name: name ?? host ?? "" };
  return isDNSName(found.namespace) && isDNSName(found.name) ? found : undefined;
}
