import { expect, it } from "vitest";
import { createFakeExec } from "../testing/fake-exec.ts";
import { readParameter, readParameters, setParameter } from "./parameters.ts";

const NAME = "net.ipv4.conf.all.route_localnet";
const { signal } = new AbortController();

it("a kernel parameter is read, and is undefined where the kernel has none of that name", async () => {
  const run = ["sysctl", "-n", NAME];
  const exec = createFakeExec([
    { run, result: { stdout: "1\n" } },
    { run, result: { code: 255, stderr: `sysctl: cannot stat /proc/sys/${NAME}: No such file or directory\n` } },
  ]);
  expect(await readParameter(exec, NAME, signal)).toBe("1");
  expect(await readParameter(exec, NAME, signal)).toBeUndefined();
});

it("several are read at once, and those that the kernel lacks are missing", async () => {
  const names = [NAME, "net.nope.nope", "net.ipv4.ip_forward", "net.ipv4.ip_local_port_range"];
  const stdout = `${NAME} = 0\nnet.ipv4.ip_forward = 1\nnet.ipv4.ip_local_port_range = 32768\t60999\n`;
  const exec = createFakeExec([{ run: ["sysctl", "-e", ...names], result: { stdout } }]);
  expect([...(await readParameters(exec, names, signal))]).toEqual([
    [NAME, "0"],
    ["net.ipv4.ip_forward", "1"],
    ["net.ipv4.ip_local_port_range", "32768\t60999"],
  ]);
});

it("a kernel parameter is set, and what the tool says against it is told", async () => {
  const run = ["sysctl", "-q", "-w", `${NAME}=1`];
  const exec = createFakeExec([
    { run },
    { run, result: { code: 255, stderr: "sysctl: permission denied on key\n" } },
    { run: ["sysctl", "-n", NAME], result: { stdout: "0\n" } },
  ]);
  await setParameter(exec, NAME, "1", signal);
  await expect(setParameter(exec, NAME, "1", signal)).rejects.toMatchObject({
    code: "tool_failed",
    object: `${NAME}: sysctl: permission denied on key`,
  });
  expect(() => exec.done()).not.toThrow();
});

it("what can't be written is set all the same where it has that value", async () => {
  const exec = createFakeExec([
    { run: ["sysctl", "-q", "-w", `${NAME}=1`], result: { code: 1, stderr: "sysctl: setting key: Read-only file system\n" } },
    { run: ["sysctl", "-n", NAME], result: { stdout: "1\n" } },
  ]);
  await setParameter(exec, NAME, "1", signal);
  expect(() => exec.done()).not.toThrow();
});
