import { expect, it } from "vitest";
import { hierarchiesOf } from "./v1-cgroups.ts";

it("reads the hierarchies of version 1, named ones and joint controllers too, and leaves out version 2", () => {
  const text = "12:name=systemd:/a\n5:cpu,cpuacct:/b:c\n4:memory:/\n0::/v2\n";
  expect(hierarchiesOf(text)).toEqual([
    { controller: "systemd", path: "/a" },
    { controller: "cpu,cpuacct", path: "/b:c" },
    { controller: "memory", path: "/" },
  ]);
});

it("finds none on a machine with version 2 alone", () => {
  expect(hierarchiesOf("0::/user.slice\n")).toEqual([]);
});
