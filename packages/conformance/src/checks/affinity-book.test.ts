import { describe, expect, it } from "vitest";
import { abilitiesOf } from "@turnout/core";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Packet } from "../oracle/packet.ts";
import type { RawObject } from "@turnout/core/testing";
import { AffinityBook } from "./affinity-book.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { addressesOf, service, slices } from "../runner/short.ts";
import { HOST_ADDRESSES, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS } from "../runner/stage.ts";

const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "203.0.113.1", destination: "10.96.0.1", port: 80, link: "eth0" };
const [ONE, TWO] = ["10.1.1.1:8080", "10.1.2.1:8080"];

function worldOf(seconds: number | undefined, endpoints: readonly string[] = ["pod-1-1", "pod-2-1"], more: RawObject = {}): OracleWorld {
  const affinity =
    seconds === undefined ? {} : { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } };
  const web = service("web", { number: 1, ways: ["externalIP"], spec: { ...affinity, ...more } });
  return {
    objects: [...STAGE_OBJECTS, web, ...slices("web", endpoints)],
    nodeName: STAGE_NODE,
    settings: STAGE_SETTINGS,
    hostAddresses: HOST_ADDRESSES,
    nodePortAddressesDefault: ["primary"],
    ...abilitiesOf(referenceBackend),
  };
}

/** A book in which the client was sent to the first endpoint at time 0, for ten seconds. */
function bookWithOne(): AffinityBook {
  const book = new AffinityBook();
  book.connected(worldOf(10), PACKET, ONE, 0);
  return book;
}

describe("what is remembered of an affine client", () => {
  it("holds for its time, through whichever address it comes, and for nobody else", () => {
    const book = bookWithOne();
    const world = worldOf(10);
    const external = { ...PACKET, destination: addressesOf(1, "externalIP").IPv4 };
    expect(book.find(world, PACKET, 9_999)).toEqual({ is: "kept", endpoint: ONE });
    expect(book.find(world, external, 9_999)).toEqual({ is: "kept", endpoint: ONE });
    expect(book.find(world, { ...PACKET, source: "203.0.113.2" }, 1)).toBeUndefined();
    expect(book.find(world, PACKET, 10_000)).toEqual({ is: "doubtful", endpoint: ONE });
    expect(book.find(world, PACKET, 10_001)).toBeUndefined();
  });

  it("is for one address, and perhaps for others, where each address has its entries", () => {
    const byAddress = (): OracleWorld => {
      const world = worldOf(10);
      return { ...world, variants: { ...world.variants, affinityScope: "address" } };
    };
    const book = new AffinityBook();
    book.connected(byAddress(), PACKET, ONE, 0);
    const external = { ...PACKET, destination: addressesOf(1, "externalIP").IPv4 };
    expect(book.find(byAddress(), PACKET, 9_999)).toEqual({ is: "kept", endpoint: ONE });
    expect(book.find(byAddress(), external, 9_999)).toEqual({ is: "doubtful", endpoint: ONE });
    book.connected(byAddress(), external, TWO, 5_000);
    expect(book.find(byAddress(), PACKET, 11_000)).toEqual({ is: "doubtful", endpoint: TWO });
    expect(book.find(byAddress(), { ...external, source: "203.0.113.2" }, 1)).toBeUndefined();
    // An address that passes to another row may take its entries along.
    const renamed = byAddress().objects.map(
      (object) =>
        JSON.parse(
          JSON.stringify(object).replaceAll('"name":"web', '"name":"heir').replaceAll('service-name":"web"', 'service-name":"heir"'),
        ) as RawObject,
    );
    expect(book.find({ ...byAddress(), objects: renamed }, PACKET, 1)).toEqual({ is: "doubtful", endpoint: ONE });
    expect(book.find(byAddress(), external, 15_001)).toBeUndefined();
  });

  it("is nothing without affinity", () => {
    const book = new AffinityBook();
    book.connected(worldOf(undefined), PACKET, ONE, 0);
    expect(book.find(worldOf(10), PACKET, 1)).toBeUndefined();
  });

  it.each([
    ["its endpoint was gone meanwhile", worldOf(10, ["pod-2-1"])],
    ["the timeout was another meanwhile", worldOf(9)],
    ["there was no affinity meanwhile", worldOf(undefined)],
  ])("is open once %s", (_, between) => {
    const book = bookWithOne();
    book.review(worldOf(10));
    expect(book.find(worldOf(10), PACKET, 1)?.is).toBe("kept");
    book.review(between);
    expect(book.find(worldOf(10), PACKET, 1)).toEqual({ is: "doubtful", endpoint: ONE });
  });

  it("is where the client was sent last once the endpoint before was gone", () => {
    const book = bookWithOne();
    book.review(worldOf(10, ["pod-2-1"]));
    book.connected(worldOf(10, ["pod-2-1"]), PACKET, TWO, 1);
    book.review(worldOf(10));
    expect(book.find(worldOf(10), PACKET, 2)).toEqual({ is: "kept", endpoint: TWO });
  });

  it("is open once a backend that forgets has ended", () => {
    const book = bookWithOne();
    book.review(worldOf(10), true);
    expect(book.find(worldOf(10), PACKET, 1)?.is).toBe("doubtful");
  });

  it("does not hold where the endpoint can't be reached, and is open once the client was sent elsewhere", () => {
    const book = bookWithOne();
    expect(book.find(worldOf(10, ["pod-2-1"]), PACKET, 1)).toBeUndefined();
    book.connected(worldOf(10), PACKET, TWO, 1);
    expect(book.find(worldOf(10), PACKET, 2)).toEqual({ is: "doubtful", endpoint: TWO });
  });
});
