import { serviceManifest, sliceManifests } from "@turnout/lab";
import { endpointFor } from "../services.ts";
import type { Site } from "../site.ts";
import type { CaseWorld } from "./cases.ts";
import { objectFaults } from "./cases.ts";

/** Write the objects of all faults that are in API objects: for each a Service of its own, as it is said to be. */
export async function applyObjects(site: Site, world: CaseWorld): Promise<void> {
  const objects = objectFaults(world).flatMap(({ own, hasNoService, service, endpoints, families, object, slices }, index) => {
    if (hasNoService === true) return [];
    const manifest = { name: `fault-${index + 1}`, clusterIPs: own, ports: [{ name: "http", port: 80, targetPort: 8080 }], ...service };
    const servers = (endpoints ?? ["pod-1-1", "pod-2-1"]).map((one) => endpointFor(site, one));
    const written = sliceManifests(manifest, servers, families ?? ["IPv4", "IPv6"]);
    return [merged(serviceManifest(manifest), object), ...written.map((slice, at) => merged(slice, slices?.[at] ?? slices?.at(-1)))];
  });
  await site.api.apply(objects);
}

/** Fields of `change` over those of `value`, also within them. */
function merged(value: unknown, change: unknown): unknown {
  const isObject = (one: unknown): one is object => typeof one === "object" && one !== null && !Array.isArray(one);
  if (!isObject(value) || !isObject(change)) return change ?? value;
  const both = { ...value, ...change } as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(both).map(([key, one]) => [key, merged((value as Record<string, unknown>)[key], one)]));
}
