import { ProxyError } from "@turnout/core/backend";
import { TestClock } from "@turnout/core/testing";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AttachedObject, EbpfObject } from "./objects.ts";
import { Serving } from "./serving.ts";
import { replacing } from "./test-support/mortal-bpf.ts";
import { Takeover } from "./test-support/takeover.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/index.ts";
import type { EbpfWorld } from "./world.ts";

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

/** Something that the kernel or nft says no to as long as `refuses.now`. */
type Refuse = (host: EbpfFakeHost, refuses: { now: boolean }) => (world: EbpfWorld) => EbpfWorld;

const REFUSED: Readonly<Record<string, { readonly refuse: Refuse; readonly says: string }>> = {
  "a hook of sockets": {
    refuse: (_, refuses) => (world) => ({
      ...world,
      bpf: replacing(world.bpf, {
        attachToCgroup: (program, cgroup, hook) => {
          if (refuses.now && hook === "sendmsg4") throw NO;
          return world.bpf.attachToCgroup(program, cgroup, hook);
        },
      }),
    }),
    says: "link turnout_send4: [tool_failed] no (EINVAL): somewhere",
  },
  "a program at a device": {
    refuse: (_, refuses) => (world) => ({
      ...world,
      bpf: replacing(world.bpf, {
        attachTc: (program, place, name) => {
          if (refuses.now && place.direction === "egress") throw NO;
          return world.bpf.attachTc(program, place, name);
        },
      }),
    }),
    says: "-egress and 3 more: [tool_failed] no (EINVAL): somewhere",
  },
  "the programs of packets": {
    refuse: (_, refuses) => (world) => ({
      ...world,
      bpf: replacing(world.bpf, {
        load: (path, options) => (refuses.now && path.includes("packets") ? Promise.reject(NO) : world.bpf.load(path, options)),
      }),
    }),
    says: "-ingress and 7 more: [tool_failed] no (EINVAL): somewhere",
  },
  "the table of nft": {
    refuse: (host, refuses) => {
      if (refuses.now) host.refuse(["inet turnout-ebpf"]);
      return (world) => world;
    },
    says: "table inet turnout-ebpf: [",
  },
};

describe("a node that takes over from a former proxy", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  const services = [{ name: "plain", number: 1, local: 1 }];
  let host: EbpfFakeHost;
  let takeover: Takeover;
  beforeEach(() => (host = createFakeHost()));
  afterEach(() => takeover.end());

  it("removes its rules once all is there", async () => {
    takeover = new Takeover(host, services);
    await takeover.done();
    expect([[...takeover.former], takeover.errors]).toEqual([[], []]);
  });

  it.each(Object.entries(REFUSED))("keeps its rules as long as the host refuses %s, and says why", async (_, { refuse, says }) => {
    const refuses = { now: true };
    takeover = new Takeover(host, services, refuse(host, refuses));
    await takeover.until(() => takeover.errors.length > 0);
    // The other family waits for half a minute, and compares everything then.
    await takeover.until(() => takeover.errors.some((line) => line.includes("the programs are not at their hooks yet")));
    await takeover.wait(60_000);
    expect([...takeover.former]).toEqual(["IPv4", "IPv6"]);
    const [first = ""] = takeover.errors;
    expect(first).toContain("this node is not served yet, a former proxy's rules stay: ");
    expect(first).toContain(says);
    refuses.now = false;
    host.refuse([]);
    await takeover.done();
    expect([...takeover.former]).toEqual([]);
  });

  it("keeps its rules, too, when another process of ours comes meanwhile", async () => {
    const refuses = { now: true };
    const alter = REFUSED["a program at a device"]?.refuse(host, refuses);
    takeover = new Takeover(host, services, alter);
    await takeover.until(() => takeover.errors.length > 0);
    await takeover.end();
    const before = takeover.errors.length;
    takeover = new Takeover(host, services, alter);
    await takeover.until(() => takeover.errors.length > before);
    await takeover.wait(60_000);
    expect([...takeover.former]).toEqual(["IPv4", "IPv6"]);
  });

  it("serves on when a single thing fails after that, also in the next process", async () => {
    takeover = new Takeover(host, services);
    await takeover.done();
    await takeover.end();
    const [link] = host.kernel.links.filter(({ place }) => place?.kind === "cgroup" && place.hook === "sendmsg4");
    link?.detach();
    const refuses = { now: true };
    takeover = new Takeover(host, services, REFUSED["a hook of sockets"]?.refuse(host, refuses));
    await takeover.done();
    expect([...takeover.former]).toEqual([]);
    expect(takeover.errors).toEqual([expect.stringContaining("an object is not in force on the host, everything else is")]);
    const lists = (): number => host.own().filter((line) => line.startsWith("parts ")).length;
    const before = lists();
    takeover.want([...services, { name: "later", number: 2, local: 1 }]);
    await takeover.until(() => lists() === before + 2);
    expect(lists()).toBe(before + 2);
    expect(takeover.errors.length).toBe(1);
  });

  it("does not wait for a device that goes meanwhile", async () => {
    takeover = new Takeover(host, services, (world) => ({
      ...world,
      bpf: replacing(world.bpf, {
        attachTc: (program, place, name) => {
          if (place.ifindex === 2) throw GONE;
          return world.bpf.attachTc(program, place, name);
        },
      }),
    }));
    await takeover.done();
    expect([...takeover.former]).toEqual([]);
  });

  it("serves packets, too, once a module that was missing is there", async () => {
    let isThere = false;
    const missing = new Map([["conntrack", new ProxyError("host_unsupported", "no nf_nat")] as const]);
    const probeBpf: EbpfWorld["probeBpf"] = async () => ({ ...(await host.world.probeBpf()), ...(isThere ? {} : { missing }) });
    const run: EbpfWorld["exec"]["run"] = (file, args, options) =>
      args.includes("--check") ? Promise.resolve({ code: 1, stdout: "", stderr: "" }) : host.world.exec.run(file, args, options);
    takeover = new Takeover(host, services, (world) => ({ ...world, probeBpf, exec: { ...world.exec, run } }));
    await takeover.done();
    const attached = (): number => host.kernel.links.filter(({ place }) => place?.kind === "tcx").length;
    const before = attached();
    isThere = true;
    await takeover.until(() => attached() > before);
    expect([attached() > before, takeover.errors]).toEqual([true, []]);
    expect(host.own().some((line) => line.includes("inet turnout-ebpf"))).toBe(true);
  });
});
