import { ProxyError, canonicalIP } from "@turnout/core";
import type { Fault, FaultSwitches } from "@turnout/conformance";
import type { Exec, ExecResult } from "@turnout/core";
import type { HostAddress } from "../netlink/host-addresses.ts";

/** What the fake of `ip` works on. */
export interface FakeLinks {
  /** Names of devices, and their kinds. */
  readonly devices: Map<string, string>;
  /** Addresses that were added by `ip`. */
  readonly addresses: HostAddress[];
  /** Called when addresses have changed. */
  onChange(): void;
}

const DONE: ExecResult = { code: 0, stdout: "", stderr: "" };

/**
 * Make an {@link Exec} that knows `ip`, as far as {@link OwnAddresses} uses it: `link show`, and batches that stop at the first complaint.
 *
 * Edges: each batch is one change for `faults`, and one that fails `during` is half done.
 */
export function createFakeIp(links: FakeLinks, faults: FaultSwitches): Exec {
  return {
    run: (file, args, { input = "", signal } = {}) => {
      if (signal?.aborted === true) return Promise.reject(new ProxyError("canceled", "it was called off", { object: file }));
      if (file !== "ip") return Promise.reject(new ProxyError("tool_missing", "there is no such program", { object: file }));
      if (args.includes("show")) return Promise.resolve(show(links, args.at(-1) ?? ""));
      if (!args.includes("-batch")) return Promise.resolve(refused(`Object "${args.join(" ")}" is unknown, try "ip help".`));
      const lines = input.split("\n").filter(Boolean);
      return Promise.resolve(batch(links, lines, faults.next(addressesIn(lines))));
    },
    open: (file) => {
      throw new Error(`nobody starts ${file} ahead of its input`);
    },
  };
}

function addressesIn(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => canonicalIP(line.split(" ")[2]?.split("/")[0] ?? "")?.text ?? []);
}

function show({ devices }: FakeLinks, device: string): ExecResult {
  const kind = devices.get(device);
  return kind === undefined
    ? refused(`Device "${device}" does not exist.`)
    : { ...DONE, stdout: `7: ${device}: <UP> \\    ${kind} numtxqueues 1\n` };
}

function batch(links: FakeLinks, lines: readonly string[], fault: Fault["when"] | undefined): ExecResult {
  if (fault === "before") return refused("RTNETLINK answers: No buffer space available");
  const count = fault === "during" ? Math.ceil(lines.length / 2) : lines.length;
  for (const [index, line] of lines.slice(0, count).entries()) {
    const complaint = carryOut(links, line.split(" "));
    if (complaint !== undefined) return refused(`${complaint}\nCommand failed -:${index + 1}`);
  }
  links.onChange();
  return fault === undefined ? DONE : refused("RTNETLINK answers: No buffer space available");
}

/** Do one line; says what `ip` would complain about. */
function carryOut(links: FakeLinks, words: readonly string[]): string | undefined {
  const [noun, verb, name = "", ...rest] = words;
  const { devices, addresses } = links;
  if (noun === "link" && verb === "add") {
    if (devices.has(name)) return "RTNETLINK answers: File exists";
    devices.set(name, rest[1] ?? "");
    return undefined;
  }
  const device = noun === "address" ? (rest[1] ?? "") : name;
  if (!devices.has(device)) return `Cannot find device "${device}"`;
  if (noun === "link" && verb === "set") return undefined;
  if (noun === "link" && verb === "del") {
    devices.delete(device);
    addresses.splice(0, addresses.length, ...addresses.filter(({ link }) => link !== device));
    return undefined;
  }
  const ip = canonicalIP(name.split("/")[0] ?? "")?.text;
  if (noun !== "address" || ip === undefined) return `Error: ${words.join(" ")}: not understood`;
  const at = addresses.findIndex((one) => one.ip === ip && one.link === device);
  if (verb === "replace" && at < 0) addresses.push({ ip, prefixLength: Number(name.split("/")[1]), link: device });
  if (verb !== "del") return undefined;
  if (at < 0) return "RTNETLINK answers: Cannot assign requested address";
  addresses.splice(at, 1);
  return undefined;
}

function refused(stderr: string): ExecResult {
  return { code: 2, stdout: "", stderr };
}
