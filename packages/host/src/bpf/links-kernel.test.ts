import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { onStage } from "../test-support/bpf-stage.ts";

const execute = (scenario: string): Promise<unknown> => onStage("bpf-links-child.ts", scenario, { hasCgroup: true });
const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);

describe("links of a real kernel", needs("root", "netns", "bpf", "cgroup2", "ip"), () => {
  beforeAll(() => buildBpf("packages/host"));

  it("sends connections elsewhere, refuses them, changes the program in place, and ends", async () => {
    expect(await execute("connect")).toEqual({
      maxEntries: 1024,
      // The program that connects sees the address it asked for.
      first: ["10.96.0.10:80 says hello", "EPERM"],
      isOurs: true,
      second: "10.96.0.10:80 says hello",
      counters: [2, 1],
      wrongType: text(
        /^\[tool_failed\] link of program on_connect4 at connect4 of .* can't be given another program \(EINVAL\): program on_ingress$/,
      ),
      wrongHook: text(/^\[tool_failed\] a program can't be attached to a cgroup \(EINVAL\): program on_connect4 at connect6 of CGROUP$/),
      detached: true,
      third: "127.0.0.1 says hello",
      isQuiet: true,
    });
  });

  it("goes on while nobody has it open, and is adopted and upgraded by its pins", async () => {
    const layout = "[invalid_object] a pinned map has another layout than the programs: /sys/fs/bpf/turnout/services: ";
    const hint = ": pin the new layout under another path, or remove the old pins";
    expect(await execute("adopt")).toEqual({
      twice: text(/^\[already_exists\] .* can't be pinned \(EEXIST\): \/sys\/fs\/bpf\/turnout\/links\/connect4$/),
      standalone: text(/^127\.0\.0\.1:\d+ says hello$/),
      kept: 1,
      upgraded: text(/^127\.0\.0\.1:\d+ says hello$/),
      counters: [1, 1],
      listed: ["/hits map hits", "/links/connect4 link cgroup", "/programs/on_connect4 program next_connect4", "/services map services"],
      otherSize: `${layout}maxEntries 64, wanted 65${hint}`,
      otherMap: `${layout}type 1, wanted 9; maxEntries 64, wanted 16${hint}`,
      otherKind: "[invalid_object] this is a map and no BPF program: /sys/fs/bpf/turnout/services",
      none: "[not_found] what is pinned can't be opened (ENOENT): /sys/fs/bpf/turnout/nothing",
      same: "services",
      outside:
        "[host_unsupported] nothing can be pinned outside a bpffs: /tmp/turnout-no-bpffs/services: mount one: mount -t bpf bpf /sys/fs/bpf",
      removed: [false, 0, true],
      noBpffs: "[host_unsupported] this folder isn't on a bpffs: /proc/self: mount one: mount -t bpf bpf /sys/fs/bpf",
    });
  });

  it("comes to a device by tcx and by clsact, and is told when the device is gone", needs("tc"), async () => {
    const nowhere = text(
      /^\[not_found\] a program can't be attached to a device, there is none of this number \(ENODEV\): program on_ingress at ingress of device 4000000, /,
    );
    expect(await execute("tc")).toEqual({
      link: [true, "ingress", true],
      pinned: [[true, "ingress"]],
      none: null,
      isOurs: true,
      shown: true,
      gone: null,
      nowhere: [nowhere, nowhere],
      afterDevice: [0],
    });
  });
});
