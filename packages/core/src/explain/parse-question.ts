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

/** Address, port, protocol. */
const TARGET = /^\[?([^\]]*)\]?:(\d+)(?:\/(\w+))?$/;

/** Read FROM TO:PORT. Pure. @throws {ProxyError} `invalid_object` naming what can't be read. */
export function parseQuestion({ from, to, protocol }: TypedQuestion): ParsedQuestion {
  const [, address = "", portText = "", said = protocol] = TARGET.exec(to) ?? [];
  const destination = canonicalIP(address);
  const port = Number(portText);
  if (destination === undefined || port < 1 || port > 65_535)
    throw new ProxyError("invalid_object", "no address and port", {
      object: to,
      hint: targetHint(from, to),
    });
  const known = PROTOCOLS.find((one) => one === said.toUpperCase());
  if (known === undefined) throw new ProxyError("invalid_object", "unknown protocol", { object: said, hint: "use tcp, udp or sctp" });
  const source = from === "host" ? "host" : canonicalIP(from)?.text;
  if (source === undefined)
    throw new ProxyError("invalid_object", "no address of a client", {
      object: from,
      hint: "write the client's IP address, e.g. a pod's, or host for this node itself",
    });
  return { from: source, destination: destination.text, port, protocol: known, family: destination.family };
}

/** What was probably meant by a destination that can't be read. */
function targetHint(from: string, to: string): string {
  const isAddress = to === "host" || canonicalIP(to) !== undefined;
  if (isAddress && canonicalIP(from) === undefined && canonicalIP(TARGET.exec(from)?.[1] ?? "") !== undefined)
    return `swapped? FROM comes first: turnout why ${to} ${from}`;
  const named = serviceNamed(to);
  if (named !== undefined) return `write the Service's address: kubectl get service -n ${named.namespace} ${named.name}`;
  return "write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp";
}

/** Read `shop/cart:http` or `cart.shop.svc:80` as a Service's name; undefined: it is none. Pure. */
export function serviceNamed(to: string): { readonly namespace: string; readonly name: string } | undefined {
  const [plain = ""] = to.split(":");
  const [, namespace, name] = /^([^/]+)\/([^/]+)$/.exec(plain) ?? [];
  const [, host, domain] = /^([^./]+)\.([^./]+)\.svc(?:\..*)?$/.exec(plain) ?? [];
  const found = { namespace: namespace ?? domain ?? "", name: name ?? host ?? "" };
  return isDNSName(found.namespace) && isDNSName(found.name) ? found : undefined;
}
