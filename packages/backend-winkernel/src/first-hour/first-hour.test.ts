import { beforeEach, describe, expect, it } from "vitest";
import type { HnsHost } from "../hns/host.ts";
import { createFakeHost } from "../testing/fake-host.ts";
import type { FakeHnsOptions } from "../testing/fake-hns.ts";
import { firstHour } from "./first-hour.ts";
import { parseRecording, recordingHns, replayedHns } from "./recording.ts";

const { signal } = new AbortController();

async function found(hns: HnsHost, networkName = "cbr0"): Promise<readonly string[]> {
  const lines: string[] = [];
  await firstHour(hns, {
    networkName,
    count: 3,
    signal,
    nowMs: () => 0,
    notify: ({ what, found: became }) => void lines.push(`${what}: ${became}`),
  });
  return lines;
}

let recorded: string;
beforeEach(() => {
  recorded = "";
});

/** Play it on an HNS in memory, and record that. */
async function record(options: FakeHnsOptions = {}): Promise<readonly string[]> {
  const host = createFakeHost(options);
  const before = [host.own(), host.external()];
  const lines = await found(
    recordingHns(
      host.hns,
      () => 0,
      (call) => void (recorded += `${JSON.stringify(call)}\n`),
    ),
  );
  expect([host.own(), host.external()]).toEqual(before);
  return lines;
}

describe("the first hour on a node", () => {
  it("tells what HNS answers and refuses, and leaves it as it was", async () => {
    expect(await record()).toEqual([
      'version: {"major":15,"minor":5}',
      "networks: cbr0 (l2bridge), nat ()",
      expect.stringMatching(/^endpoints that are there: \d+ can be read$/),
      "load balancers that are there: 1 can be read",
      expect.stringMatching(/^a remote endpoint: .*"addresses":\["192.0.2.1"\].*"isRemote":true/),
      "another one at its address: made, too",
      "a load balancer: made",
      "another one at its address: HNS: 0x803b0013: The specified port already exists.",
      "one without endpoints: HNS: 0x803b001c: The reference is invalid in the JSON document. A Reference is required",
      "one that names an endpoint that isn't there: HNS: 0x803b0002: The endpoint was not found.",
      "a change of its port: as it was sent",
      "the change, read back: as it was sent",
      "removing an endpoint that is in use: HNS: 0x803b002c: The entity has references.",
      "3 load balancers: made in 0 ms",
      "looking at all: 5 in 0 ms",
      "removing load balancers: 4 removed",
      "removing endpoints: 2 removed",
      "removing a load balancer that is gone: 1 HNS: 0x80070490: Element not found.",
    ]);
  });

  it.each<[string, FakeHnsOptions, string]>([
    ["15.4, which says yes and changes nothing", { version: { major: 15, minor: 4 } }, "the change, read back: not as it was sent"],
    ["13.2, which can't change", { version: { major: 13, minor: 2 } }, "a change of its port: HNS: 0x80004001: Not implemented"],
    ["endpoints that go while they are in use", { deleteInUse: "allowed" }, "removing an endpoint that is in use: removed"],
  ])("tells of %s", async (_, options, line) => {
    expect(await record(options)).toContain(line);
  });

  it("plays the same from its recording", async () => {
    const lines = await record();
    expect(await found(replayedHns(parseRecording(recorded)))).toEqual(lines);
  });

  it("says where a recording is of something else", async () => {
    await record();
    const calls = parseRecording(recorded);
    const other = replayedHns(calls.filter(({ call }) => call !== "createEndpoint"));
    await expect(found(other)).rejects.toThrow(/call 5 is createEndpoint .*, and createLoadBalancer .* was recorded/);
    await expect(found(replayedHns([]))).rejects.toThrow(/call 1 is version , and the recording ends there/);
  });

  it("says which networks there are where the one it is told isn't", async () => {
    await expect(found(createFakeHost().hns, "cbr1")).rejects.toMatchObject({ code: "not_found" });
  });
});
