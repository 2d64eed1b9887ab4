// A thread that replaces the endpoints of two services as fast as it can, while sockets-child.ts connects to one of them.
import { workerData } from "node:worker_threads";
import { createBpf } from "@turnout/host/bpf";
import { encodeDestination, encodeEndpoint, encodePlace, encodeService } from "../bytes/layout.ts";
import { listId, NO_LIST } from "../names.ts";
import type { Choice } from "../objects.ts";

/** What the thread is told: the maps, by number, and when to stop; it counts its rounds. */
export interface FlipperData {
  readonly services: number;
  readonly endpoints: number;
  /** [0]: anything but 0 means stop; [1]: rounds. */
  readonly shared: Int32Array;
}

const { services, endpoints, shared } = workerData as FlipperData;
const bpf = createBpf();
const [serviceMap, endpointMap] = [bpf.openMap({ id: services }), bpf.openMap({ id: endpoints })];

/** Two lists for each service; none has an endpoint of the other's. */
const ROUNDS = [
  { key: "10.96.0.1:80/UDP", lists: [["10.1.1.10:8080"], ["10.1.1.11:8080", "10.1.1.15:8080"]] },
  { key: "10.96.0.2:80/UDP", lists: [["10.1.1.50:8080", "10.1.1.55:8080"], ["10.1.1.60:8080"]] },
].map(({ key, lists }) => ({
  key: encodeDestination(key),
  lists: lists.map((list) => {
    const id = listId(list);
    const choice: Choice = { verdict: "serve", list: id, count: list.length, masquerade: false };
    return {
      places: list.map((text, index) => ({ key: encodePlace(id, index), value: encodeEndpoint(text) })),
      value: encodeService({
        row: NO_LIST,
        tenant: NO_LIST,
        ranges: NO_LIST,
        affinitySeconds: 0,
        affinitySets: 0,
        podsPass: false,
        hostPass: false,
        isClusterIP: true,
        pod: choice,
        host: choice,
        outside: choice,
      }),
    };
  }),
}));

for (let round = 0; Atomics.load(shared, 0) === 0; round += 1) {
  for (const { key, lists } of ROUNDS) {
    const [next, last] = [lists[round % 2], lists[(round + 1) % 2]];
    for (const place of next?.places ?? []) endpointMap.update(place.key, place.value);
    if (next !== undefined) serviceMap.update(key, next.value);
    // At once, and not a second later as in a plan: what is tried is that programs get over it.
    for (const place of last?.places ?? []) endpointMap.delete(place.key);
  }
  Atomics.add(shared, 1, 1);
}
