import { describe, expect, test } from "vitest";
import type { DestinationKind, ServicePort } from "@turnout/core";
import { toyFull, ToyLog, toyRow } from "../../test-support/toys.ts";
import { ServerAddresses } from "./server-addresses.ts";

const SERVER = "192.0.2.9";

function wanting(name: string, kind: DestinationKind, address: string, port: number): ServicePort {
  const row = toyRow(name);
  return { ...row, destinations: [...row.destinations, { kind, address, port, rules: [{ from: "anyone", to: "cluster", masquerade: true }] }] };
}

describe("R-74 the node-state server's address", () => {
  test("is left out of external IPs, at its port alone, and reported once", async () => {
    const log = new ToyLog();
    const addresses = new ServerAddresses({ kind: "tls", host: SERVER, port: 7443 }, log);
    const rows = [
      wanting("thief", "externalIP", SERVER, 7443),
      wanting("near", "externalIP", SERVER, 80),
      wanting("balanced", "loadBalancerIP", SERVER, 7443),
      wanting("cluster", "clusterIP", SERVER, 7443),
    ];
    const full = toyFull(rows);
    expect(addresses.without(full)).toBe(full);
    expect([await addresses.refresh(), await addresses.refresh()]).toEqual([true, false]);
    for (let times = 0; times < 2; times++) {
      const { set } = addresses.without(full);
      expect(set.map((row, index) => row === full.set[index])).toEqual([false, true, true, true]);
      expect(set[0]?.destinations).toEqual(toyRow("thief").destinations);
    }
    expect(log.lines.filter((line) => line.includes(SERVER))).toHaveLength(2);
  });

  test("is that of a name, and none on a unix socket", async () => {
    const log = new ToyLog();
    const named = new ServerAddresses({ kind: "tls", host: "localhost", port: 7443 }, log);
    await named.refresh();
    const full = toyFull([wanting("thief", "externalIP", "127.0.0.1", 7443)]);
    expect(named.without(full).set[0]?.destinations).toEqual(toyRow("thief").destinations);
    expect(await new ServerAddresses({ kind: "unix", path: "/run/x" }, log).refresh()).toBe(false);
    expect(await new ServerAddresses({ kind: "tls", host: "no-such-name.invalid", port: 1 }, log).refresh()).toBe(false);
  });
});
