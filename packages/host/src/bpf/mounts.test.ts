import { expect, it } from "vitest";
import { bpfMountsIn, findMount, parseMounts } from "./mounts.ts";

const MOUNTINFO = `24 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate
32 24 0:28 / /mnt/with\\040blank rw - bpf bpf rw,mode=700
33 24 0:29 / /sys/fs/bpf rw - bpf none rw
34 33 0:30 / /mnt/covered rw - bpf bpf rw
35 34 0:31 / /mnt/covered rw - tmpfs tmpfs rw

`;

it("reads what is mounted where, also without optional fields and with a blank in the path", () => {
  const mounts = parseMounts(MOUNTINFO);
  expect(mounts).toHaveLength(7);
  expect(mounts[2]).toEqual({ path: "/sys/fs/cgroup/unified", type: "cgroup2" });
  expect(mounts[3]).toEqual({ path: "/mnt/with blank", type: "bpf" });
  expect(parseMounts("")).toEqual([]);
});

it("finds the usual place first, then any other, and none over which something else lies", () => {
  const mounts = parseMounts(MOUNTINFO);
  expect(findMount(mounts, "bpf", "/sys/fs/bpf")).toBe("/sys/fs/bpf");
  expect(findMount(mounts, "bpf", "/elsewhere")).toBe("/mnt/with blank");
  expect(findMount(mounts, "cgroup2", "/sys/fs/cgroup")).toBe("/sys/fs/cgroup/unified");
  expect(findMount(mounts.slice(5), "bpf", "/sys/fs/bpf")).toBeUndefined();
  expect(findMount(mounts, "nfs", "/")).toBeUndefined();
});

it("finds what eBPF needs", () => {
  expect(bpfMountsIn(MOUNTINFO)).toEqual({ bpffs: "/sys/fs/bpf", cgroup2: "/sys/fs/cgroup/unified" });
  expect(bpfMountsIn("")).toEqual({ bpffs: undefined, cgroup2: undefined });
});
