import { expect, it } from "vitest";
import { objectId } from "../contract/backend.ts";
import type { Backend, KernelObject } from "../contract/backend.ts";
import type { ServicePort } from "../model/rows.ts";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawService, rawSlice } from "../testing/index.ts";
import type { Cause } from "./answer.ts";
import { explainPacket } from "./explain-packet.ts";
import type { PacketQuestion } from "./explain-packet.ts";

type Question = PacketQuestion<unknown, KernelObject, unknown>;

const OBJECT: KernelObject = { kind: "chain", key: "a", value: "drop" };
const { signal } = new AbortController();

function question(held: readonly KernelObject[]): Question {
  const objects = [rawService("web", { clusterIP: "10.96.0.10" }), rawSlice("web", [{ ip: "10.1.1.5", node: "node1" }])];
  const family = {
    skeleton: () => [OBJECT],
    render: () => [],
    lookup: () => Promise.resolve(new Map(held.map((object) => [objectId(object), object]))),
  } as unknown as Backend<unknown, KernelObject, unknown>;
  return {
    packet: askedPacket(),
    state: explainedState(objects, { hostAddresses: ["172.18.0.1"] }),
    backend: { name: "toy", family, host: {} },
  };
}

it("what the kernel lacks is a culprit, but not judged where the running proxy did not tell its flags in time", async () => {
  const unknownFlags = "the running proxy did not answer within 3 s";
  expect((await explainPacket(question([]), signal)).causes).toMatchObject([{ id: "kernel_missing" }]);
  const { causes, unseen, steps } = await explainPacket({ ...question([]), unknownFlags }, signal);
  expect(causes).toEqual([]);
  expect(unseen).toEqual([
    expect.stringContaining(
      "the running proxy did not answer within 3 s, so its flags are not known; with the flags of this command: removed",
    ),
  ]);
  expect(steps.at(-1)?.says).toMatch(/can't be told: the proxy doesn't answer, so it isn't known with which flags it made them$/);
  const whole = await explainPacket({ ...question([OBJECT]), unknownFlags }, signal);
  expect(whole.unseen).toEqual([]);
  expect(whole.steps.at(-1)?.says).toBe(
    "Turnout's rules for this are in the kernel, complete, as the flags of this command make them (1 checked)",
  );
});

it("what another process has in force is not looked for in the kernel", async () => {
  const { causes, steps, unseen } = await explainPacket({ ...question([]), isInOtherProcess: true }, signal);
  expect(causes).toEqual([]);
  expect(steps.map(({ says }) => says).join()).not.toContain("in the kernel");
  expect(unseen).toEqual([expect.stringContaining("it is in the proxy's process")]);
});

it("of a packet with two families nothing is said but that", async () => {
  const asked = question([]);
  const packet = { ...asked.packet, source: "fd00:1::6" };
  const causes = [{ id: "not_running", isSure: false, says: "no proxy answers", fix: "start it" }] as const;
  expect(await explainPacket({ ...asked, packet, causes }, signal)).toMatchObject({
    steps: [],
    causes: [{ id: "families_differ", fix: "ask with the client's IPv4 address, or for the Service's IPv6 address" }],
    notes: [],
    unseen: [],
  });
});

it("where no proxy runs, what the kernel lacks is the culprit, and starting one is what mends it", async () => {
  const gone: Cause = {
    id: "not_running",
    isSure: false,
    says: "no proxy answers",
    fix: "start it again",
    commands: ["journalctl -u turnout"],
  };
  const { causes } = await explainPacket({ ...question([]), causes: [gone] }, signal);
  expect(causes).toMatchObject([
    {
      id: "kernel_missing",
      fix: "no proxy is at work here, so nothing puts this right: start it again",
      commands: ["journalctl -u turnout"],
    },
    gone,
  ]);
  expect((await explainPacket({ ...question([OBJECT]), causes: [gone] }, signal)).causes).toEqual([gone]);
});

it("a list that the kernel has in another order is no difference where the backend says so", async () => {
  const wanted: KernelObject = { ...OBJECT, value: ["a", "b"] };
  const asked = question([{ ...OBJECT, value: ["b", "a"] }]);
  const family = { ...asked.backend.family, skeleton: () => [wanted] };
  const causes = async (more: object): Promise<readonly string[]> =>
    (await explainPacket({ ...asked, backend: { ...asked.backend, family: { ...family, ...more } } }, signal)).causes.map(({ id }) => id);
  expect(await causes({})).toEqual(["kernel_changed"]);
  expect(await causes({ keepPlaces: (_: KernelObject, held: KernelObject) => held })).toEqual([]);
});

it("rules of other flags than the proxy's that answers are another proxy's", async () => {
  const asked = question([{ ...OBJECT, value: "accept" }]);
  const family = { ...asked.backend.family, describe: () => ({ what: "the chain a", show: "nft list a", isOfOtherSettings: true }) };
  const others = { ...asked, backend: { ...asked.backend, family } };
  expect((await explainPacket(others, signal)).causes).toMatchObject([{ id: "other_flags" }]);
  const { causes, steps } = await explainPacket({ ...others, isOfProxy: true }, signal);
  expect(causes).toMatchObject([{ id: "two_proxies", isSure: false, show: ["nft list a", "turnout doctor"] }]);
  expect(causes[0]?.fix).not.toContain("--source");
  expect(steps.at(-1)?.says).toContain("are not this proxy's");
});

it("what a packet meets first is named first, and what only other destinations need comes last", async () => {
  const asked = question([]);
  const object = (key: string): KernelObject => ({ kind: "chain", key, value: key });
  const held: KernelObject = { ...object("postrouting"), value: "changed" };
  const family = {
    ...asked.backend.family,
    skeleton: () => ["postrouting", "jump", "output"].map(object),
    render: ({ destinations }: ServicePort) => destinations.map(({ kind }) => object(kind)),
    isWayIn: ({ key }: KernelObject, device: string) => key === (device === "" ? "output" : "jump"),
    lookup: () => Promise.resolve(new Map([[objectId(held), held]])),
  };
  const rows = [...asked.state.rows].map((row) => ({
    ...row,
    destinations: [{ kind: "nodePort", address: "", port: 30_080, rules: [] } as const, ...row.destinations],
  }));
  const named = async (device: string): Promise<readonly string[] | undefined> => {
    const packet = { ...asked.packet, device };
    const whole = { ...asked, packet, state: { ...asked.state, rows }, backend: { ...asked.backend, family } };
    return (await explainPacket(whole, signal)).causes[0]?.differences;
  };
  const changed = 'changed: chain postrouting: "changed" instead of "postrouting"';
  const behind = ["removed: chain nodePort"];
  expect(await named("veth2")).toEqual(["removed: chain jump", "removed: chain clusterIP", changed, "removed: chain output", ...behind]);
  expect(await named("")).toEqual(["removed: chain output", "removed: chain clusterIP", changed, "removed: chain jump", ...behind]);
});

it("what the kernel holds otherwise is a guess where the flags are known to be others", async () => {
  const flags: Cause = { id: "other_flags", isSure: false, says: "told otherwise", fix: "leave them out" };
  const { causes, steps } = await explainPacket({ ...question([]), causes: [flags] }, signal);
  expect(causes).toMatchObject([{ id: "other_flags" }, { id: "kernel_missing", isSure: false }]);
  expect(steps.at(-1)?.says).toContain("can't be told: they were made with other flags");
});

/** A host that still has node port 30777, and a backend that makes an object of each destination, and looks up what it is asked for. */
function questionAt(destination: string, port: number, more: Partial<Question["state"]> = {}): Question {
  const left: KernelObject = { kind: "nodePort", key: ":30777", value: 1 };
  const held = new Map([OBJECT, left].map((object) => [objectId(object), object]));
  const family = {
    skeleton: () => [OBJECT],
    render: ({ destinations }: ServicePort) => destinations.map((one) => ({ kind: one.kind, key: `${one.address}:${one.port}`, value: 1 })),
    lookup: (objects: readonly KernelObject[]) =>
      Promise.resolve(new Map([...held].filter(([id]) => objects.some((object) => objectId(object) === id)))),
  } as unknown as Question["backend"]["family"];
  const { packet, state, backend } = question([]);
  return { packet: { ...packet, destination, port }, state: { ...state, ...more }, backend: { ...backend, family } };
}

const idsOf = async (asked: Question): Promise<readonly string[]> => (await explainPacket(asked, signal)).causes.map(({ id }) => id);

it("what the kernel still has for a node port that is no Service's is looked for at the host's addresses", async () => {
  expect(await idsOf(questionAt("172.18.0.1", 30_777))).toContain("kernel_stale");
  expect(await idsOf(questionAt("172.18.0.1", 30_778))).not.toContain("kernel_stale");
  expect(await idsOf(questionAt("172.18.0.9", 30_777))).not.toContain("kernel_stale");
});

it("a node port of a Service is none that is left, where the packet is not for it", async () => {
  const [row] = [...question([]).state.rows];
  const [destination] = row?.destinations ?? [];
  if (row === undefined || destination === undefined) throw new Error("the Service has a cluster IP");
  const nodePort = { ...destination, kind: "nodePort", address: "", port: 30_777 } as const;
  const udp: ServicePort = { ...row, name: { ...row.name, protocol: "UDP" }, destinations: [nodePort] };
  expect(await idsOf(questionAt("172.18.0.1", 30_777, { rows: [udp] }))).toEqual(["wrong_protocol"]);
});

it("what should be in force is rendered as the proxy does it that has so many endpoints", async () => {
  const asked = question([OBJECT, { kind: "row", key: "web", value: true }]);
  const [row] = asked.state.rows;
  const endpoints = Array.from({ length: 1_001 }, (_, port) => ({ ...row?.endpoints[0], port: port + 1 }));
  const render: Question["backend"]["family"]["render"] = (_row, { hasManyEndpoints = false }) => [
    { kind: "row", key: "web", value: hasManyEndpoints },
  ];
  const backend = { ...asked.backend, family: { ...asked.backend.family, render } };
  const many = { ...asked.state, rows: [{ ...row, endpoints } as ServicePort] };
  expect((await explainPacket({ ...asked, backend, state: many }, signal)).causes).toEqual([]);
  expect((await explainPacket({ ...asked, backend }, signal)).causes).toMatchObject([{ id: "kernel_changed" }]);
});
