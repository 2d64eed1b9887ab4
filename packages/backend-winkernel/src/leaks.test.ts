import { createRandom, pickOne } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { expect, it } from "vitest";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { WinkernelFakeHost } from "./testing/index.ts";

const SEEDS = 40;
const STEPS = 25;
const PODS = ["10.1.1.1", "10.1.1.2", "10.1.2.1", "10.1.2.2", "10.1.2.3", "10.1.2.4"];

/** Two Services that share endpoints. */
function randomState(random: () => number): readonly RawObject[] {
  return [1, 2].flatMap((number) => {
    if (random() < 0.2) return [];
    const pods = PODS.filter(() => random() < 0.4);
    const spec = {
      clusterIP: `10.96.0.${number}`,
      ...(random() < 0.5 ? { externalIPs: [`198.51.100.${number}`] } : {}),
      ...(random() < 0.3 ? { externalTrafficPolicy: "Local", type: "NodePort" } : {}),
    };
    const text = JSON.stringify(cart(pods, spec)).replaceAll('"cart', `"cart-${number}`);
    return JSON.parse(text) as readonly RawObject[];
  });
}

/** Addresses of remote endpoints, and how many load balancers name each. */
function references({ hns, networkId }: WinkernelFakeHost): ReadonlyMap<string, number> {
  const remote = [...hns.endpoints.values()].filter(({ settings }) => settings.Flags === 1 && settings.HostComputeNetwork === networkId);
  return new Map(
    remote.map(({ id, settings }) => {
      const users = [...hns.balancers.values()].filter((one) => one.settings.HostComputeEndpoints.includes(id));
      return [settings.IpConfigurations[0]?.IpAddress ?? "", users.length];
    }),
  );
}

it("whatever comes and goes, remote endpoints are those that load balancers name, one for each address, and all go at the end", async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = createRandom(seed);
    const host = createFakeHost({
      version: pickOne(
        [
          { major: 13, minor: 2 },
          { major: 15, minor: 5 },
        ],
        random,
      ),
    });
    const external = host.external();
    let proxy = await openProxy(host.world);
    for (let step = 0; step < STEPS; step++) {
      if (random() < 0.2) host.hns.failDeletes(1);
      const outcome = await proxy.apply(randomState(random));
      expect(outcome, `seed ${seed} step ${step}`).toEqual({});
      const counts = [...references(host)];
      expect(
        counts.filter(([, users]) => users === 0),
        `seed ${seed} step ${step}`,
      ).toEqual([]);
      expect(new Set(counts.map(([ip]) => ip)).size).toBe(
        [...host.hns.endpoints.values()].filter((one) => one.settings.Flags === 1).length - 1,
      );
      if (random() < 0.1) proxy = await openProxy(host.world);
    }
    await proxy.apply([]);
    expect([host.own(), host.external()], `seed ${seed}`).toEqual([[], external]);
  }
});
