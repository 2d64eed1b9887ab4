import type { IPFamily } from "@turnout/core/backend";
import { SERVICE_FLAG } from "@turnout/host/ipvs/model";
import type { IpvsOperation, VirtualServer, VirtualServerKey, VirtualServerSettings } from "@turnout/host/ipvs/model";
import { readKey } from "./objects.ts";
import type { ServerObject, ServiceObject } from "./objects.ts";
import type { ServerChange } from "./plan.ts";

/** Each client is by itself: the bits of a whole address. */
const CLIENT_BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };
/** With mh the client's port counts, too. @source kube-proxy pkg/util/ipvs FlagSourceHash */
const SCHEDULER_FLAGS: Readonly<Record<string, number>> = { mh: SERVICE_FLAG.schedulerFlag2 };

/** No scheduler looks at it; ipvsadm shows `flag-3`. */
export const MARK_FLAG: number = SERVICE_FLAG.schedulerFlag3;

/** What identifies a virtual server, from an object's key. */
export function virtualServerOf(key: string, family: IPFamily): VirtualServerKey {
  const { protocol, address, port } = readKey(key);
  return { family, protocol, address, port };
}

/** A virtual server as the kernel is to have it. */
export function settingsOf({ value }: ServiceObject, family: IPFamily): VirtualServerSettings {
  const { scheduler, persistentSeconds, isMarked } = value;
  return {
    scheduler,
    flags: (persistentSeconds > 0 ? SERVICE_FLAG.persistent : 0) | (SCHEDULER_FLAGS[scheduler] ?? 0) | (isMarked ? MARK_FLAG : 0),
    timeoutSeconds: persistentSeconds,
    clientPrefixLength: CLIENT_BITS[family],
  };
}

/** The change that brings an object into force. */
export function operationOf({ object, isThere }: ServerChange, family: IPFamily): IpvsOperation {
  const key = virtualServerOf(object.key, family);
  if (object.kind === "service")
    return { verb: isThere ? "edit-service" : "add-service", service: { ...key, ...settingsOf(object, family) } };
  return { verb: isThere ? "edit-server" : "add-server", service: key, server: { ...realServerOf(object), weight: object.value } };
}

/** What identifies a real server among those of its virtual server. */
export function realServerOf({ key }: Pick<ServerObject, "key">): { readonly address: string; readonly port: number } {
  const { server } = readKey(key);
  return { address: server?.ip ?? "", port: server?.port ?? 0 };
}

/** A virtual server as an object; settings that we never make are in the scheduler's words, so that they differ from what is wanted. */
export function serviceObject(key: string, server: VirtualServer): ServiceObject {
  const wanted: ServiceObject = {
    kind: "service",
    key,
    value: {
      scheduler: server.scheduler,
      persistentSeconds: (server.flags & SERVICE_FLAG.persistent) === 0 ? 0 : server.timeoutSeconds,
      isMarked: (server.flags & MARK_FLAG) !== 0,
    },
  };
  const { flags, clientPrefixLength } = settingsOf(wanted, server.family);
  if (server.flags === flags && server.clientPrefixLength === clientPrefixLength) return wanted;
  return {
    ...wanted,
    value: { ...wanted.value, scheduler: `${server.scheduler} flags ${server.flags} clients /${server.clientPrefixLength}` },
  };
}
