import type { ExecResult, IPFamily } from "@turnout/core";
import { createFakeExec } from "../testing/fake-exec.ts";
import { createFakeNetlink } from "../testing/fake-netlink.ts";
import type { LinuxWorld } from "../world.ts";
import { describe, expect, it } from "vitest";
import { OwnAddresses } from "./own-addresses.ts";
import { Mutex } from "../netlink/mutex.ts";

const { signal } = new AbortController();
const DEVICE = { name: "turnout0", hint: "rename it" };
const SHOW = { run: ["ip", "-d", "-o", "link", "show", "dev", "turnout0"] } as const;
const ABSENT: Partial<ExecResult> = { code: 1, stderr: 'Device "turnout0" does not exist.' };
const THERE: Partial<ExecResult> = { stdout: "7: turnout0: <BROADCAST,NOARP,UP> mtu 1500 \\    dummy addrgenmode none numtxqueues 1" };

function batch(family: "-4" | "-6", ...lines: readonly string[]): { readonly run: readonly string[]; readonly input: string } {
  return { run: ["ip", family, "-batch", "-"], input: `${lines.join("\n")}\n` };
}

const UP = ["link set turnout0 addrgenmode none", "link set turnout0 up"];

describe("addresses of ours", () => {
  it("sit on a dummy device, and are never a source", async () => {
    const exec = createFakeExec([
      { ...SHOW, result: ABSENT },
      batch("-4", "link add turnout0 type dummy"),
      batch("-4", ...UP, "address replace 10.96.0.1/32 dev turnout0 scope host"),
      { ...SHOW, result: THERE },
      batch("-4", ...UP, "address replace 10.96.0.2/32 dev turnout0 scope host"),
      batch("-4", "address del 10.96.0.1/32 dev turnout0"),
    ]);
    const own = new OwnAddresses({ exec, netlink: createFakeNetlink() }, DEVICE, "IPv4", new Mutex());
    await own.add([], signal);
    await own.add(["10.96.0.1"], signal);
    await own.add(["10.96.0.2"], signal);
    await own.remove(["10.96.0.1"], signal);
    expect(() => exec.done()).not.toThrow();
  });

  it("sit on a bridge where the kernel has no dummy devices", async () => {
    const exec = createFakeExec([
      { ...SHOW, result: ABSENT },
      { ...batch("-6", "link add turnout0 type dummy"), result: { code: 1, stderr: "Error: Unknown device type.\nCommand failed -:1\n" } },
      batch("-6", "link add turnout0 type bridge"),
      batch("-6", ...UP, "address replace fd00:96::1/128 dev turnout0 nodad preferred_lft 0"),
    ]);
    await new OwnAddresses({ exec, netlink: createFakeNetlink() }, DEVICE, "IPv6", new Mutex()).add(["fd00:96::1"], signal);
    expect(() => exec.done()).not.toThrow();
  });

  it("leave a device alone that isn't ours, and say so", async () => {
    const exec = createFakeExec([{ ...SHOW, result: { stdout: "7: turnout0: <UP> mtu 1500 \\    vxlan id 4 numtxqueues 1" } }]);
    const own = new OwnAddresses({ exec, netlink: createFakeNetlink() }, DEVICE, "IPv4", new Mutex());
    await expect(own.add(["10.96.0.1"], signal)).rejects.toThrow(
      "[host_unsupported] a device that isn't ours has our name: turnout0: rename it",
    );
    expect(() => exec.done()).not.toThrow();
  });

  it("say what ip complains about", async () => {
    const refused = { code: 1, stderr: "RTNETLINK answers: Operation not permitted\nCommand failed -:1\n" };
    const exec = createFakeExec([
      { ...SHOW, result: ABSENT },
      { ...batch("-4", "link add turnout0 type dummy"), result: refused },
    ]);
    const own = new OwnAddresses({ exec, netlink: createFakeNetlink() }, DEVICE, "IPv4", new Mutex());
    await expect(own.add(["10.96.0.1"], signal)).rejects.toThrow("(RTNETLINK answers: Operation not permitted): turnout0");
  });

  it("take the device with them when the last family goes", async () => {
    const at = (ip: string): { ip: string; prefixLength: number; link: string } => ({ ip, prefixLength: 128, link: "turnout0" });
    const netlink = createFakeNetlink({ addresses: { IPv4: [at("10.96.0.1")], IPv6: [at("fd00:96::1"), at("fe80::1")] } });
    const exec = createFakeExec([
      batch("-4", "address del 10.96.0.1/32 dev turnout0"),
      { ...SHOW, result: THERE },
      batch("-6", "link del turnout0"),
      { ...SHOW, result: ABSENT },
    ]);
    const mutex = new Mutex();
    const of = (family: IPFamily): OwnAddresses =>
      new OwnAddresses({ exec, netlink } satisfies Pick<LinuxWorld, "exec" | "netlink">, DEVICE, family, mutex);
    expect(await of("IPv6").list()).toEqual(["fd00:96::1"]);
    await of("IPv4").removeAll(signal);
    netlink.setAddresses("IPv4", []);
    await of("IPv6").removeAll(signal);
    netlink.setAddresses("IPv6", []);
    await of("IPv4").removeAll(signal);
    expect(() => exec.done()).not.toThrow();
  });
});
