import type { IPFamily } from "@turnout/core";
import { ipBytes } from "../netlink/conntrack/conntrack.ts";
import { genericPayload } from "../netlink/generic.ts";
import { AF } from "../netlink/host-addresses.ts";
import { attribute, be16, host16, host32, nested, zeroEnded } from "../netlink/message.ts";
import { ATTR, COMMAND, DEST, HASHED_FLAG, IPVS_VERSION, PROTOCOL_NUMBER, SVC } from "./constants.ts";
import { FORWARDING } from "./model/model.ts";
import type { IpvsOperation, IpvsTimeouts, RealServerKey, VirtualServerKey, VirtualServerSettings } from "./model/model.ts";

/** All flags are ours to set but the kernel's own. */
const FLAG_MASK = (0xffff_ffff & ~HASHED_FLAG) >>> 0;

/** The body of a request that lists all virtual servers. */
export function servicesRequest(): Buffer {
  return payload(COMMAND.getService);
}

/** The body of a request that lists the real servers of one virtual server. */
export function realServersRequest(service: VirtualServerKey): Buffer {
  return payload(COMMAND.getDest, nested(ATTR.service, keyOf(service)));
}

/** The body of a question without arguments. */
export function questionRequest(question: "timeouts" | "version"): Buffer {
  return payload(question === "timeouts" ? COMMAND.getConfig : COMMAND.getInfo);
}

/** The body of a request that sets timeouts; 0 leaves one as it is. */
export function timeoutsRequest({ tcp, tcpFin, udp }: IpvsTimeouts): Buffer {
  return payload(
    COMMAND.setConfig,
    attribute(ATTR.timeoutTcp, host32(tcp)),
    attribute(ATTR.timeoutTcpFin, host32(tcpFin)),
    attribute(ATTR.timeoutUdp, host32(udp)),
  );
}

/** The body of the request that an operation is. */
export function operationRequest(operation: IpvsOperation): Buffer {
  switch (operation.verb) {
    case "add-service":
      return payload(COMMAND.newService, serviceOf(operation.service));
    case "edit-service":
      return payload(COMMAND.setService, serviceOf(operation.service));
    case "delete-service":
      return payload(COMMAND.delService, nested(ATTR.service, keyOf(operation.service)));
    case "add-server":
      return serverRequest(COMMAND.newDest, operation);
    case "edit-server":
      return serverRequest(COMMAND.setDest, operation);
    case "delete-server": {
      const { service, server } = operation;
      return payload(COMMAND.delDest, nested(ATTR.service, keyOf(service)), nested(ATTR.dest, serverKeyOf(service.family, server)));
    }
  }
}

function payload(command: number, ...attributes: readonly Uint8Array[]): Buffer {
  return genericPayload(command, IPVS_VERSION, ...attributes);
}

function serviceOf(service: VirtualServerKey & VirtualServerSettings): Buffer {
  const flags = Buffer.concat([host32((service.flags & FLAG_MASK) >>> 0), host32(FLAG_MASK)]);
  return nested(
    ATTR.service,
    keyOf(service),
    attribute(SVC.scheduler, zeroEnded(service.scheduler)),
    attribute(SVC.flags, flags),
    attribute(SVC.timeout, host32(service.timeoutSeconds)),
    attribute(SVC.netmask, netmaskOf(service)),
  );
}

/** IPv4 has a mask in network order, IPv6 a number of bits. @source Linux ip_vs_genl_parse_service, ip_vs_add_service */
function netmaskOf({ family, clientPrefixLength }: VirtualServerKey & VirtualServerSettings): Buffer {
  if (family === "IPv6") return host32(clientPrefixLength);
  const mask = Buffer.alloc(4);
  mask.writeUInt32BE(clientPrefixLength === 0 ? 0 : (-1 << (32 - clientPrefixLength)) >>> 0);
  return mask;
}

function keyOf({ family, protocol, address, port }: VirtualServerKey): Buffer {
  return Buffer.concat([
    attribute(SVC.family, host16(AF[family])),
    attribute(SVC.protocol, host16(PROTOCOL_NUMBER[protocol])),
    attribute(SVC.address, ipBytes(address)),
    attribute(SVC.port, be16(port)),
  ]);
}

function serverRequest(
  command: number,
  { service, server }: Extract<IpvsOperation, { readonly verb: "add-server" | "edit-server" }>,
): Buffer {
  return payload(
    command,
    nested(ATTR.service, keyOf(service)),
    nested(
      ATTR.dest,
      serverKeyOf(service.family, server),
      attribute(DEST.forward, host32(FORWARDING.indexOf("masquerade"))),
      attribute(DEST.weight, host32(server.weight)),
      attribute(DEST.upperThreshold, host32(0)),
      attribute(DEST.lowerThreshold, host32(0)),
    ),
  );
}

function serverKeyOf(family: IPFamily, { address, port }: RealServerKey): Buffer {
  return Buffer.concat([
    attribute(DEST.family, host16(AF[family])),
    attribute(DEST.address, ipBytes(address)),
    attribute(DEST.port, be16(port)),
  ]);
}
