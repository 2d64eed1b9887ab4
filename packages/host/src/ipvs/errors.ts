import { ProxyError } from "@turnout/core";
import { errno, kernelError } from "../netlink/errno.ts";
import { operationObject } from "./model/model.ts";
import type { IpvsOperation, IpvsTimeouts } from "./model/model.ts";

const WHAT: Readonly<Record<IpvsOperation["verb"], string>> = {
  "add-service": "a virtual server can't be added",
  "edit-service": "a virtual server can't be changed",
  "delete-service": "a virtual server can't be deleted",
  "add-server": "a real server can't be added",
  "edit-server": "a real server can't be changed",
  "delete-server": "a real server can't be deleted",
};

/** Say that the kernel has no IPVS. */
export function ipvsMissing(): ProxyError {
  return new ProxyError("host_unsupported", "this kernel has no IPVS", { hint: "load it: modprobe ip_vs" });
}

/**
 * Put the kernel's refusal of one operation into an error; undefined: it took it.
 *
 * Edges: EINVAL says nothing of routes: a real server without one is taken. A virtual server that isn't there is ESRCH, a real server that isn't ENOENT, and so is a scheduler that the kernel can't load.
 * @source Linux net/netfilter/ipvs/ip_vs_ctl.c
 */
export function operationError(operation: IpvsOperation, value: number): ProxyError | undefined {
  if (value === 0) return undefined;
  const what = WHAT[operation.verb];
  const object = operationObject(operation);
  switch (value) {
    case errno("ESRCH"):
      return new ProxyError("not_found", `${what}, its virtual server isn't there (ESRCH)`, { object });
    case errno("ENOENT"): {
      if (operation.verb !== "add-service" && operation.verb !== "edit-service") break;
      const { scheduler } = operation.service;
      const hint = `load it: modprobe ip_vs_${scheduler}`;
      return new ProxyError("host_unsupported", `${what}, there is no scheduler ${scheduler} (ENOENT)`, { object, hint });
    }
    case errno("EINVAL"): {
      return new ProxyError("invalid_object", `${what} (EINVAL)`, { object, hint: hintOf(operation) });
    }
  }
  return kernelError(value, what, { object });
}

/** Put the kernel's refusal of timeouts into an error. */
export function timeoutsError({ tcp, tcpFin, udp }: IpvsTimeouts, value: number): ProxyError {
  return kernelError(value, "timeouts of IPVS can't be set", { object: `tcp ${tcp}, tcpfin ${tcpFin}, udp ${udp}` });
}

function hintOf(operation: IpvsOperation): string {
  if ("server" in operation) return `is ${operation.server.address} multicast, broadcast or link-local, or has this host no address yet?`;
  return "a scheduler's name has up to 15 characters, a client prefix up to the address's bits";
}
