import { describe, expect, it } from "vitest";
import type { KernelObject } from "../contract/backend.ts";
import { rawSlice } from "../testing/objects.ts";
import { createSyncBench, service } from "../test-support/sync-bench.ts";
import type { SyncBench } from "../test-support/sync-bench.ts";
import { refuses, ToyHost } from "../test-support/toy-backend.ts";

const REFUSED = "row refused by the host, kept as it was";

/** Who has an address in force, as its object says. */
function ownerOf({ objects }: ToyHost, address: string): unknown {
  return objects.get(`destination ${address}:80 80/TCP`)?.value;
}

function errorsOf({ log }: SyncBench): readonly string[] {
  return log.lines.filter(({ level }) => level === "error").map(({ message }) => message);
}

describe("R-55 a row in force that the host would refuse now", () => {
  it("holds up no other when everything was flushed", async () => {
    const bench = await createSyncBench([service(1), service(2), service(3)]);
    bench.host.faults = { refuses: refuses("10.96.0.2") };
    bench.host.objects.clear();
    bench.loop.audit();
    await bench.clock.advance(0);
    expect([bench.addresses(), bench.loop.lastError]).toEqual([["10.96.0.1", "10.96.0.3"], undefined]);
  });

  it("holds up no other that comes when it alone was lost", async () => {
    const bench = await createSyncBench([service(1), service(2)]);
    bench.host.faults = { refuses: refuses("10.96.0.2") };
    bench.host.objects.delete("destination 10.96.0.2:80 80/TCP");
    bench.loop.audit();
    await bench.clock.advance(1_000);
    bench.upsert(service(4));
    await bench.clock.advance(0);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.4"]);
  });

  it("and in its new form, too, holds up no other while it waits", async () => {
    const bench = await createSyncBench([service(1), service(2, { externalIPs: ["192.0.2.1"] })]);
    bench.host.faults = { refuses: refuses("10.96.0.2") };
    bench.upsert(service(2, { externalIPs: ["192.0.2.2"] }));
    await bench.clock.advance(125_000);
    bench.host.objects.delete("destination 10.96.0.2:80 80/TCP");
    bench.loop.audit();
    await bench.clock.advance(0);
    bench.upsert(service(3));
    await bench.clock.advance(0);
    expect(bench.addresses()).toContain("10.96.0.3");
  });
});

describe("R-55 a row that is held as it was", () => {
  it("keeps no address that has passed to another", async () => {
    const bench = await createSyncBench([service(1, { externalIPs: ["192.0.2.1"] }), service(2)]);
    bench.host.faults = { refuses: refuses("192.0.2.66") };
    bench.upsert(service(1, { externalIPs: ["192.0.2.66"] }));
    bench.upsert(service(2, { externalIPs: ["192.0.2.1"] }));
    await bench.clock.advance(0);
    expect(ownerOf(bench.host, "192.0.2.1")).toMatchObject({ row: "shop/s2:http/TCP" });
    expect(errorsOf(bench)).toEqual([REFUSED]);
  });

  it("keeps no cluster IP that a Service gets later", async () => {
    const bench = await createSyncBench([service(1, { externalIPs: ["10.97.0.20"] }), service(2)]);
    bench.host.faults = { refuses: refuses("192.0.2.66") };
    bench.upsert(service(1, { externalIPs: ["10.97.0.20", "192.0.2.66"] }));
    await bench.clock.advance(0);
    bench.upsert(service(20, { clusterIP: "10.97.0.20" }));
    await bench.clock.advance(60_000);
    expect(ownerOf(bench.host, "10.97.0.20")).toMatchObject({ row: "shop/s20:http/TCP" });
  });

  it("keeps no old form of what rows share", async () => {
    const objects = [1, 2, 3].flatMap((n) => [service(n), rawSlice(`s${n}`, [{ ip: `10.1.0.${n}` }])]);
    const bench = await createSyncBench(objects);
    bench.host.faults = { refuses: (object) => refuses("10.96.0.2")(object) && refuses('"generation":2')(object) };
    bench.loop.setHost({ generation: 2 });
    await bench.clock.advance(0);
    expect(bench.host.objects.get("pick 1")?.value).toEqual({ size: 1, generation: 2 });
    expect(errorsOf(bench)).toEqual([REFUSED]);
  });

  it("since before a restart keeps what it may share with a Service that goes", async () => {
    const host = new ToyHost();
    const two = [{ ip: "10.1.1.1" }, { ip: "10.1.1.2" }];
    const [web, other] = [service(9), [service(1), rawSlice("s1", two)]];
    await (await createSyncBench([web, rawSlice("s9", two), ...other], { host })).stop();
    const now = [web, rawSlice("s9", [...two, { ip: "10.1.1.9" }]), ...other, service(2)];
    const bench = await createSyncBench(now, { host, faults: { refuses: refuses("10.1.1.9") } });
    bench.remove("s1");
    await bench.clock.advance(0);
    expect([bench.addresses(), host.objects.has("pick 2")]).toEqual([["10.96.0.2", "10.96.0.9"], true]);
  });
});

describe("R-55 what is refused for the first time", () => {
  it("waits no longer because something else has been refused for long", async () => {
    let isBad = true;
    const isRefused = (object: KernelObject): boolean => refuses("10.96.0.2")(object) || (isBad && refuses("10.96.0.3")(object));
    const bench = await createSyncBench([service(1), service(2)], { faults: { isAtomic: false, refuses: isRefused } });
    await bench.clock.advance(125_000);
    bench.upsert(service(3));
    await bench.clock.advance(0);
    isBad = false;
    await bench.clock.advance(5_000);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.3"]);
  });
});
