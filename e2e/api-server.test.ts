import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { startLoad } from "./load.ts";
import { reach } from "./reach.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

describe.each(layoutsOf("trouble with the API server"))("trouble with the API server, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout });
  });
  afterAll(() => site?.destroy());

  it("its going away breaks nothing, even if the proxy starts anew meanwhile, and it is followed when it is back", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
    const load = await startLoad(site, [
      { from: "pod-1-3", way: "clusterIP", service },
      { from: "client1", way: "nodePort@node2", service },
      { from: "node2", way: "externalIP", service },
    ]);
    await site.api.pause();
    await load.more(40);
    await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
    for (const proxy of site.proxies) proxy.start();
    await load.more(100);
    expect(site.proxies.map((proxy) => proxy.isRunning)).toEqual([true, true]);
    await site.api.resume();
    await service.setEndpoints(["pod-1-2", "pod-2-2"]);
    await load.more(20);
    const { tallies, held } = await load.stop();
    expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
    expect(new Set(held)).toEqual(new Set(["open"]));
    expect(await reach(site, service, "IPv6", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-2 pod-2-2 saw pod-1-3");
  });

  it("its misbehaving delays what changes and loses nothing", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const follows = async (pod: string): Promise<void> => {
      await service.setEndpoints([pod]);
      expect(await reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe(`${pod} saw pod-1-3`);
    };
    await steadyWatches();
    await site.api.dropWatches();
    await follows("pod-1-2");
    await steadyWatches();
    await site.api.pause();
    await site.api.compact();
    await site.api.resume();
    await follows("pod-2-1");
    await steadyWatches();
    await site.api.misbehave({ status: 500, only: { verb: "watch" }, times: 2 });
    await site.api.dropWatches();
    await follows("pod-2-2");
    await steadyWatches();
    await site.api.misbehave({ truncateEvents: true, times: 2 });
    await follows("pod-1-1");
    await site.api.behave();
  });
});

/** Let the watches live for the 5 s that end a series of failures: the pause before a new try doubles with each loss of a younger one, to 45 s. */
function steadyWatches(): Promise<void> {
  return sleep(5_500);
}
