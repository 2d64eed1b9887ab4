import { expect, it } from "vitest";
import { describeObject, unservedDevice, unservedSockets } from "./describe.ts";

it("a program at a device is called by the device's name, as long as that is known", () => {
  const program = { kind: "device", key: "4-ingress", value: { program: "turnout_in", programs: "v1" } } as const;
  expect(describeObject(program, () => "eth0").what).toBe("the program at ingress of eth0");
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
