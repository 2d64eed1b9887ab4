import { TestClock } from "@turnout/core/testing";
import { createFakeNetlink } from "@turnout/host/testing";
import { describe, expect, it } from "vitest";
import { DriftBell, watchHost } from "./watch.ts";

const bare = {
  clock: new TestClock(0),
  netlink: createFakeNetlink(),
  canOwnAddresses: () => Promise.resolve(true),
  isDisturbed: () => Promise.resolve(false),
};

describe("watchHost", () => {
  it("tells what was rung before anybody listened, and several rings before a look once", async () => {
    const { clock, netlink, ...rest } = bare;
    const [bell, stop] = [new DriftBell(), new AbortController()];
    bell.ring("a listener failed");
    const watching = watchHost({ ...rest, bell, world: { clock, netlink } }, stop.signal)[Symbol.asyncIterator]();
    expect((await watching.next()).value).toMatchObject({ kind: "facts" });
    expect((await watching.next()).value).toEqual({ kind: "drift", what: "a listener failed" });
    for (const what of ["another failed", "and another"]) bell.ring(what);
    expect((await watching.next()).value).toEqual({ kind: "drift", what: "another failed" });
    const last = watching.next();
    stop.abort();
    expect((await last).done).toBe(true);
  });

  it("begins with the facts as they are, and then tells of addresses that are others", async () => {
    const { clock, ...rest } = bare;
    const netlink = createFakeNetlink({ addresses: { IPv4: [{ ip: "172.18.0.8", prefixLength: 24, link: "eth0" }] } });
    const stop = new AbortController();
    const watching = watchHost({ ...rest, bell: new DriftBell(), world: { clock, netlink } }, stop.signal)[Symbol.asyncIterator]();
    const facts = (...IPv4: readonly string[]): unknown => ({
      kind: "facts",
      facts: { addresses: { IPv4, IPv6: [] }, canOwnAddresses: true },
    });
    expect((await watching.next()).value).toEqual(facts("172.18.0.8"));
    netlink.setAddresses("IPv4", []);
    expect((await watching.next()).value).toEqual(facts());
    stop.abort();
  });
});
