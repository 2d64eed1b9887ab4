import { ProxyError } from "@turnout/core/backend";
import { TestClock } from "@turnout/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ebpfModule } from "./module.ts";
import type { AttachedObject, EbpfObject } from "./objects.ts";
import { Serving } from "./serving.ts";
import { fakeWorld } from "./test-support/fake-world.ts";
import type { FakeWorld } from "./test-support/fake-world.ts";

const { signal } = new AbortController();
const LINK: AttachedObject = { kind: "link", key: "turnout_conn4", value: { programs: "", cgroup: "1" } };
const DEVICE: AttachedObject = { kind: "device", key: "2-ingress", value: { programs: "", program: "turnout_in" } };
const SERVING: EbpfObject = { kind: "serving", key: "IPv4", value: true };
const NO = new ProxyError("tool_failed", "no (EINVAL)", { object: "somewhere" });
const GONE = new ProxyError("not_found", "there is none of this number (ENODEV)");
const none = new Map<AttachedObject, ProxyError>();

describe("Serving", () => {
  let serving: Serving;
  beforeEach(() => (serving = new Serving()));

  it("begins when nothing is missing, and not by a later plan in which nothing happens to fail", () => {
    serving.tried([LINK, DEVICE], new Map([[LINK, NO]]));
    const refusal =
      "[timed_out] this node is not served yet, a former proxy's rules stay: link turnout_conn4: [tool_failed] no (EINVAL): somewhere";
    expect(() => serving.begin()).toThrow(refusal);
    serving.tried([DEVICE], new Map([[DEVICE, NO]]));
    serving.tried([DEVICE], none);
    expect(() => serving.begin()).toThrow(refusal);
    serving.tried([LINK], none);
    expect(serving.begin()).toBeUndefined();
  });

  it("tells how many more are missing", () => {
    serving.tried([LINK, DEVICE], new Map([LINK, DEVICE].map((one) => [one, NO])));
    expect(() => serving.begin()).toThrow("stay: link turnout_conn4 and 1 more: [tool_failed] no");
  });

  it("does without a device that is gone, and with what failed before the host was looked at again", () => {
    serving.tried([DEVICE], new Map([[DEVICE, GONE]]));
    expect(serving.begin()).toBeUndefined();
    serving = new Serving();
    serving.tried([LINK], new Map([[LINK, GONE]]));
    expect(() => serving.begin()).toThrow("link turnout_conn4");
    serving.found([LINK]);
    expect(serving.begin()).toBeUndefined();
  });

  it.each([
    ["has begun", (): void => serving.begin()],
    ["was found to have", (): void => serving.found([LINK, SERVING])],
  ])("goes on when something fails after it %s", (_, begin) => {
    begin();
    serving.tried([LINK], new Map([[LINK, NO]]));
    expect(serving.begin()).toBeUndefined();
  });

  it("has the other family wait until it begins", async () => {
    const clock = new TestClock();
    let isDone = false;
    const waiting = serving.demand(clock, signal).then(() => (isDone = true));
    serving.found([LINK]);
    await clock.advance(100);
    expect(isDone).toBe(false);
    serving.begin();
    await clock.advance(100);
    await waiting;
    serving.found([]);
    expect(await serving.demand(clock, signal)).toBeUndefined();
  });

  it("has it wait no longer than it may", async () => {
    const clock = new TestClock();
    const late = serving.demand(clock, signal).catch((error: unknown) => String(error));
    await clock.advance(31_000);
    expect(await late).toContain("[timed_out]");
    await expect(serving.demand(clock, AbortSignal.abort())).rejects.toThrow("[canceled]");
  });
});

it("packets are served, too, once a module that was missing is there", async () => {
  const world = fakeWorld();
  let isThere = false;
  const missing = new Map([["conntrack", new ProxyError("host_unsupported", "no nf_nat")] as const]);
  const probeBpf: FakeWorld["probeBpf"] = async () => ({ ...(await world.probeBpf()), ...(isThere ? {} : { missing }) });
  const dataplane = await ebpfModule.open(ebpfModule.parseOptions({}), { ...world, probeBpf }, signal);
  const stop = new AbortController();
  const seen: boolean[] = [];
  const follow = async (): Promise<void> => {
    for await (const event of dataplane.family("IPv4").watch?.(stop.signal) ?? [])
      if (event.kind === "facts") seen.push(event.facts.hasPackets);
  };
  const following = follow();
  await world.clock.advance(1_000);
  isThere = true;
  await world.clock.advance(120_000);
  stop.abort();
  await world.clock.advance(1_000);
  await following;
  expect([seen.at(0), seen.at(-1)]).toEqual([false, true]);
  expect(world.log.lines.filter((line) => line.startsWith("info packets from elsewhere are served from now on"))).toHaveLength(1);
});
