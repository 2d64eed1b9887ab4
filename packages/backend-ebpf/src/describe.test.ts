import { expect, it } from "vitest";
import { describeObject, unservedDevice, unservedSockets } from "./describe.ts";
import type { EbpfObject, ServiceObject } from "./objects.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";

const HOST = { nameOf: () => "eth0", folder: "/sys/fs/bpf/turnout/v1-a" };
const LIST = "00112233445566aa";
const serve = { verdict: "serve", list: LIST, count: 2, masquerade: false } as const;
const service: ServiceObject = {
  kind: "service",
  key: "10.96.0.1:80/TCP",
  value: {
    row: LIST,
    tenant: LIST,
    ranges: LIST,
    affinitySeconds: 0,
    affinitySets: 0,
    podsPass: false,
    hostPass: false,
    isClusterIP: true,
    pod: serve,
    host: serve,
    outside: serve,
  },
};
const list = (...endpoints: readonly string[]): EbpfObject => ({ kind: "list", key: LIST, value: endpoints });

it("a program at a device is called by the device's name, as long as that is known", () => {
  const program = { kind: "device", key: "4-ingress", value: { program: "turnout_in", programs: "v1" } } as const;
  expect(describeObject(program, HOST).what).toBe("the program at ingress of eth0");
  const held: EbpfObject = { ...program, value: { program: "", programs: "" } };
  expect(describeObject(program, HOST, held).differs).toMatch(/^the program at ingress of eth0 is detached/);
});

it("a program that was detached from its cgroup is called so", () => {
  const program: EbpfObject = { kind: "link", key: "turnout_conn4", value: { cgroup: "12", programs: "v1" } };
  const held: EbpfObject = { ...program, value: { cgroup: "0", programs: "v1" } };
  expect(describeObject(program, HOST, held).differs).toBe(
    "the program turnout_conn4 at connect4 of its cgroup is detached: sockets are not served there",
  );
});

it("an element is shown by its key's bytes in the map that is pinned", () => {
  expect(describeObject(service, HOST)).toEqual({
    what: "element 10.96.0.1:80/TCP of BPF map services",
    show: "bpftool map lookup pinned /sys/fs/bpf/turnout/v1-a/services key hex 00 00 00 00 00 00 00 00 00 00 ff ff 0a 60 00 01 00 50 06 00",
  });
  expect(describeObject(service, { ...HOST, folder: undefined }).show).toBeUndefined();
});

it("an element of services that differs is told by what becomes of packets", () => {
  const held: EbpfObject = { ...service, value: { ...service.value, host: { ...serve, verdict: "drop" } } };
  expect(describeObject(service, HOST, held).differs).toBe(
    `with packets for 10.96.0.1:80/TCP from this node the kernel does "drop", should: "serve 2 of list ${LIST}" (BPF map services)`,
  );
  const forgetful: EbpfObject = { ...service, value: { ...service.value, affinitySeconds: 10 } };
  expect(describeObject(service, HOST, forgetful).differs).toBeUndefined();
});

it("what settings decide is of other settings where that alone differs", () => {
  const isOther = (wanted: EbpfObject, held?: EbpfObject): boolean | undefined => describeObject(wanted, HOST, held).isOfOtherSettings;
  const link = (cgroup: string, programs = "v1"): EbpfObject => ({ kind: "link", key: "turnout_conn4", value: { cgroup, programs } });
  expect([link("1089"), link("12", "v2"), link("0"), link("12", "")].map((held) => isOther(link("12"), held))).toEqual([
    true,
    true,
    undefined,
    undefined,
  ]);
  const device = (program: "turnout_in" | "turnout_in_pods" | ""): EbpfObject => ({
    kind: "device",
    key: "4-ingress",
    value: { program, programs: "v1" },
  });
  expect([device("turnout_in_pods"), device("")].map((held) => isOther(device("turnout_in"), held))).toEqual([true, undefined]);
  const masqueraded = { ...service, value: { ...service.value, podsPass: true, outside: { ...serve, masquerade: true } } };
  expect(isOther(service, masqueraded)).toBe(true);
  expect(isOther(service, { ...masqueraded, value: { ...masqueraded.value, affinitySeconds: 10 } })).toBeUndefined();
  const address = (hasNodePorts: boolean): EbpfObject => ({
    kind: "node-address",
    key: "172.18.0.1",
    value: { hasNodePorts, hasListeners: true },
  });
  expect([isOther(address(false), address(true)), isOther(address(false))]).toEqual([true, undefined]);
  expect(isOther({ kind: "counter", key: LIST, value: true })).toBe(true);
});

it("a list is told by its endpoints, and shown at the place that differs", () => {
  const [wanted, one] = [list("10.1.0.5:80", "10.1.0.6:80"), list("10.1.0.5:80")];
  expect(describeObject(wanted, HOST).what).toBe(`list ${LIST} of BPF map endpoints (endpoints 10.1.0.5:80, 10.1.0.6:80)`);
  const { differs, show } = describeObject(wanted, HOST, one);
  expect(differs).toBe(`list ${LIST} of BPF map endpoints sends packets to 10.1.0.5:80, should: 10.1.0.5:80, 10.1.0.6:80`);
  expect(show).toMatch(/\/endpoints key hex 00 11 22 33 44 55 66 aa 01 00 00 00 00 00 00 00$/);
});

it("the table of nft is told by the line that it lacks or has besides", () => {
  const held = (value: readonly string[]): EbpfObject => ({ ...TABLE_OBJECT, value });
  const differs = (value: readonly string[]): string | undefined => describeObject(TABLE_OBJECT, HOST, held(value)).differs;
  const [first = "", ...rest] = TABLE_OBJECT.value;
  expect(differs(rest)).toBe(`the nftables table inet turnout-ebpf lacks "${first}"`);
  expect(differs([...TABLE_OBJECT.value, "nat drop"])).toBe(
    'the nftables table inet turnout-ebpf has "nat drop", which should not be there',
  );
});

it("a device without programs is told with why it has none", () => {
  expect(unservedDevice("eth1", { devices: ["veth*"] })).toBe(
    "eth1 carries no program of Turnout: option devices (veth*) does not name it",
  );
  expect(unservedDevice("eth1", { devices: [] })).toMatch(/^eth1 carries no program of Turnout: no default route goes by it/);
});

it("sockets are all served at the root of cgroups alone", () => {
  expect(unservedSockets({ cgroup: undefined }, { cgroup: "1" })).toBeUndefined();
  expect(unservedSockets({ cgroup: "/sys/fs/cgroup/sub" }, { cgroup: "44" })).toContain("below /sys/fs/cgroup/sub are served");
  expect(unservedSockets({ cgroup: undefined }, { cgroup: "44" })).toContain("cgroup of the proxy's container");
});
