import { constants } from "node:os";
import type { FlowFilter } from "@turnout/core";
import { describe, expect, it } from "vitest";
import type { OnReply } from "../channel.ts";
import { dumpRequest, ipBytes, parseEntry } from "./conntrack.ts";
import { deleteMatchingFlows, dumpsFor } from "./flow-deletion.ts";
import type { FlowChannel } from "./flow-deletion.ts";
import { ipText } from "../host-addresses.ts";
import { attribute, be16, findAttribute, nested } from "../message.ts";

const never = new AbortController().signal;
const { EINTR, EINVAL, ENOENT, EOPNOTSUPP, EPERM } = constants.errno;

function tuple(type: number, source: string, sourcePort: number, destination: string, port: number, protocol: number): Buffer {
  const [v4, v6] = [
    [1, 2],
    [3, 4],
  ] as const;
  const [from, to] = source.includes(":") ? v6 : v4;
  const proto = nested(2, attribute(1, Buffer.of(protocol)), attribute(2, be16(sourcePort)), attribute(3, be16(port)));
  return nested(type, nested(1, attribute(from, ipBytes(source)), attribute(to, ipBytes(destination))), proto);
}

/** A conntrack message of UDP, or `protocol`: client 10.0.0.1:1000 to destination:53, answered by reply:53. */
function entry(destination: string, reply: string, protocol = 17, id = 1): Buffer {
  const client = destination.includes(":") ? "fd00::1" : "10.0.0.1";
  const header = Buffer.of(destination.includes(":") ? 10 : 2, 0, 0, 0);
  const tuples = [tuple(1, client, 1000, destination, 53, protocol), tuple(2, reply, 53, client, 1000, protocol)];
  return Buffer.concat([header, ...tuples, attribute(12, Buffer.of(0, 0, 0, id)), attribute(18, Buffer.of(0, 7))]);
}

interface Script {
  readonly dumps: readonly { readonly entries?: readonly Buffer[]; readonly errno?: number; readonly interrupted?: boolean }[];
  readonly errnos?: readonly number[];
}

/** A channel that plays a script and keeps what it was asked. */
function fakeChannel(script: Script): FlowChannel & { readonly dumps: Buffer[]; readonly deletes: Uint8Array[] } {
  const dumps: Buffer[] = [];
  const deletes: Uint8Array[] = [];
  return {
    dumps,
    deletes,
    async dump(_: number, payload: Uint8Array, onReply: OnReply) {
      const step = script.dumps[dumps.length];
      if (step === undefined) throw new Error("a dump too many");
      dumps.push(Buffer.from(payload));
      for (const message of step.entries ?? []) onReply(256, message);
      return { errno: step.errno ?? 0, interrupted: step.interrupted ?? false };
    },
    async requestMany(_: number, payloads: readonly Uint8Array[]) {
      deletes.push(...payloads);
      return payloads.map((__, index) => script.errnos?.[index] ?? 0);
    },
  };
}

function filters(...addresses: readonly string[]): readonly FlowFilter[] {
  return addresses.map((address) => ({ protocol: "UDP", address, port: 53, keep: [] }));
}

const gone = entry("10.96.0.10", "10.1.0.9");
const [one] = [filters("10.96.0.10")];

describe("deleteMatchingFlows", () => {
  it("asks for nothing when there is nothing to forget", async () => {
    const channel = fakeChannel({ dumps: [] });
    expect(await deleteMatchingFlows(channel, "IPv4", [], [], never)).toBe(0);
    expect(channel.deletes).toEqual([]);
  });

  it("deletes by reply tuple, zone and id, never without a tuple", async () => {
    const channel = fakeChannel({ dumps: [{ entries: [gone] }] });
    expect(await deleteMatchingFlows(channel, "IPv4", one, [], never)).toBe(1);
    const request = Buffer.from(channel.deletes[0] ?? []);
    expect(request.subarray(0, 4)).toEqual(Buffer.of(2, 0, 0, 0));
    expect(findAttribute(request, 2, 4)).toEqual(findAttribute(gone, 2, 4));
    expect(findAttribute(request, 18, 4)).toEqual(Buffer.of(0, 7));
    expect(findAttribute(request, 12, 4)).toEqual(Buffer.of(0, 0, 0, 1));
  });

  it("falls back to a whole dump, and then to no other", async () => {
    for (const errno of [EOPNOTSUPP, EINVAL]) {
      const channel = fakeChannel({
        dumps: [{ errno }, { entries: [gone, entry("10.96.0.11", "10.1.0.8"), entry("10.96.0.10", "10.1.0.7", 6)] }],
      });
      expect(await deleteMatchingFlows(channel, "IPv4", filters("10.96.0.10", "10.96.0.11"), [], never)).toBe(2);
      expect(channel.dumps[1]).toEqual(dumpRequest("IPv4", undefined));
    }
  });

  it("takes one dump from a kernel that ignores filters", async () => {
    const channel = fakeChannel({ dumps: [{ entries: [gone, entry("10.96.0.11", "10.1.0.8"), entry("10.96.0.12", "10.1.0.7")] }] });
    expect(await deleteMatchingFlows(channel, "IPv4", filters("10.96.0.10", "10.96.0.11"), [], never)).toBe(2);
  });

  it("repeats an interrupted dump once, and deletes what either showed, once", async () => {
    const other = entry("10.96.0.10", "10.1.0.8");
    const script = [
      { entries: [gone], interrupted: true },
      { entries: [gone, other], errno: EINTR },
    ];
    const channel = fakeChannel({ dumps: script });
    expect(await deleteMatchingFlows(channel, "IPv4", one, [], never)).toBe(2);
    expect(channel.dumps.length).toBe(2);
  });

  it("doesn't count entries that went by themselves", async () => {
    const channel = fakeChannel({ dumps: [{ entries: [gone, entry("10.96.0.10", "10.1.0.8")] }], errnos: [ENOENT, 0] });
    expect(await deleteMatchingFlows(channel, "IPv4", one, [], never)).toBe(1);
  });

  it("reports refusals", async () => {
    const refusedDump = deleteMatchingFlows(fakeChannel({ dumps: [{ errno: EPERM }] }), "IPv4", one, [], never);
    await expect(refusedDump).rejects.toMatchObject({ code: "permission_denied" });
    const refusedDelete = deleteMatchingFlows(fakeChannel({ dumps: [{ entries: [gone] }], errnos: [EPERM] }), "IPv4", one, [], never);
    await expect(refusedDelete).rejects.toMatchObject({ code: "permission_denied" });
  });

  it("gives up on abort", async () => {
    const doing = deleteMatchingFlows(fakeChannel({ dumps: [] }), "IPv4", one, [], AbortSignal.abort());
    await expect(doing).rejects.toMatchObject({ code: "canceled" });
  });

  it("deletes nothing of what it saw when it is stopped while it looks", async () => {
    const stop = new AbortController();
    const channel = fakeChannel({ dumps: [{ entries: [gone] }] });
    const dump: FlowChannel["dump"] = async (...args) => {
      stop.abort();
      return await channel.dump(...args);
    };
    await expect(deleteMatchingFlows({ ...channel, dump }, "IPv4", one, [], stop.signal)).rejects.toMatchObject({ code: "canceled" });
    expect(channel.deletes).toEqual([]);
  });
});

describe("dumpsFor", () => {
  const many = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `10.96.0.${index}`);
  it.each([
    ["one a destination", filters("10.96.0.10", ""), "IPv4", [{ destination: "10.96.0.10", port: 53 }, { port: 53 }]],
    ["one for equal ones", filters("10.96.0.10", "10.96.0.10"), "IPv4", [{ destination: "10.96.0.10", port: 53 }]],
    ["IPv6 by port alone", filters("fd96::10", "fd96::11"), "IPv6", [{ port: 53 }]],
    ["one for all UDP above sixteen", filters(...many(17)), "IPv4", [{}]],
  ] as const)("%s", (_, given, family, dumps) => expect(dumpsFor(family, given)).toEqual(dumps));

  it("sixteen for sixteen", () => expect(dumpsFor("IPv4", filters(...many(16))).length).toBe(16));
});

describe("parseEntry", () => {
  it("refuses other families, and what has no ports or is cut off", () => {
    expect(parseEntry(gone, "IPv6")).toBeUndefined();
    for (let length = 0; length < gone.length - 20; length++) expect(parseEntry(gone.subarray(0, length), "IPv4")).toBeUndefined();
  });

  it("reads IPv6", () => {
    const parsed = parseEntry(entry("fd96::10", "fd01::6"), "IPv6");
    expect([parsed?.destination(), parsed?.port, parsed?.replySource()]).toEqual(["fd96::10", 53, "[fd01::6]:53"]);
  });
});

describe("addresses as bytes", () => {
  it.each(["0.0.0.0", "10.96.0.10", "255.255.255.255", "::", "::1", "fd96::10", "2001:db8:0:1::", "1:2:3:4:5:6:7:8", "1::8"])(
    "%s and back",
    (text) => expect(ipText(ipBytes(text))).toBe(text),
  );
});
