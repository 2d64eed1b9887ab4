import type { AskedPacket, FateEndpoint } from "@turnout/core";
import type { Route } from "../readings/route.ts";
import type { HookedPacket } from "@turnout/host/rules";

/** A packet's way over this host, as rules of others see it. */
export interface HookedWay {
  readonly packet: AskedPacket;
  readonly endpoint: FateEndpoint;
  /** The device it leaves by; "" where it ends here. */
  readonly outDevice: string;
  /** The device that answers leave by. */
  readonly backDevice: string;
  /** The device that what this host sends leaves by as long as it is not translated; absent: the same. */
  readonly sentBy?: string;
  /** There is no way to the endpoint: it gets no further than to where its route is looked up. */
  readonly isLost?: boolean;
  /** conntrack translates it for a Service; false: it goes on as it is. */
  readonly isTranslated: boolean;
  /** A program at the client's socket has put the endpoint in the Service's place: `packet` is for the endpoint. */
  readonly isBySocket?: boolean;
  /** A proxy's process of this host is to get it. */
  readonly isForProxy?: boolean;
  /** The backend's own rules are in kube-proxy's chains. */
  readonly hasKubeChains?: boolean;
  /** IPVS translates it, behind the input hook: it comes in for an address of this host, which then sends it on as if it were its own. */
  readonly isServedAtInput?: boolean;
  /** conntrack knows what its addresses become, both of them, before the first hook: no nat chain is asked. */
  readonly isTranslatedBefore?: boolean;
  /** What the endpoint sends to the packet's source comes by this host. */
  readonly isAnsweredHere?: boolean;
  /** The mark that asks for masquerade; 0: the backend uses none. */
  readonly markBit: number;
  readonly isLocal: (address: string) => boolean;
  readonly isInSet: HookedPacket["isInSet"];
  /** Whether a device is a bridge; absent: none is. */
  readonly isBridge?: (device: string) => boolean;
  /** This host's own route to an address; absent, or undefined: not known (yet). */
  readonly routeOf?: (address: string) => Route | undefined;
  /** Whether a program takes packets out of a queue; absent: it can't be told. */
  readonly isQueueServed?: HookedPacket["isQueueServed"];
}
