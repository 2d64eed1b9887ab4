import type { Protocol } from "@turnout/core";
import { placeNameOf, serverName } from "@turnout/conformance";
import type { Listener } from "@turnout/conformance";
import { SERVER_PORT } from "./services.ts";
import { HTTP_PORT } from "./site.ts";
import type { Site } from "./site.ts";

/** Servers that are started when a scenario first needs them. */
export interface StageServers {
  /** Have a place serve at one of its addresses, under the name that the kit's words have for it. */
  serve(place: string, listener: Listener): Promise<void>;
  /** Serve wherever an endpoint of a slice says so; addresses that nobody has are left out. */
  listen(listeners: readonly Listener[]): Promise<void>;
  /** Stop those that cost something while nobody asks: SCTP's look for packets every 2 ms. */
  rest(): Promise<void>;
}

/** Begin with what every site's pods serve; they stop what takes a port that an endpoint may have. */
export async function createStageServers(site: Site): Promise<StageServers> {
  const pods = site.cluster.nodes.flatMap((node) => node.pods);
  await Promise.all(pods.map((pod) => pod.agent().stop({ transport: "HTTP", port: HTTP_PORT, how: "drain" })));
  const everywhere: readonly Protocol[] = ["TCP", "UDP"];
  const restless = new Map<string, () => Promise<void>>();
  const listening = new Set(pods.flatMap((pod) => everywhere.map((protocol) => `${pod.name} ${protocol} ${SERVER_PORT}`)));
  // Bound to the one address: a datagram's answer must come from where the question went.
  const serve = async (place: string, { address, port, protocol }: Listener): Promise<void> => {
    const key = `${place} ${protocol} ${port}`;
    if (listening.has(key) || listening.has(`${key} ${address}`)) return;
    listening.add(`${key} ${address}`);
    const agent = site.place(place).agent();
    await agent.serve({ name: nameAt(address, port), transport: protocol, port, address });
    if (protocol === "SCTP") restless.set(`${key} ${address}`, () => agent.stop({ transport: protocol, port, address, how: "drain" }));
  };
  return {
    serve,
    listen: async (listeners) => {
      for (const listener of listeners) {
        const place = placeNameOf(listener.address);
        if (place !== listener.address) await serve(place, listener);
      }
    },
    rest: async () => {
      for (const [key, stop] of restless) {
        listening.delete(key);
        await stop();
      }
      restless.clear();
    },
  };
}

/** The name under which whoever has an address answers there. */
export function nameAt(address: string, port: number): string {
  return serverName(address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
}
