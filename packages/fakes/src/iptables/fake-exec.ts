import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult } from "@turnout/core";
import type { IptablesVariant } from "@turnout/host/iptables";
import { startedLater } from "@turnout/host/testing";
import type { FakeSysctl } from "@turnout/host/testing";
import type { Program } from "./run-program.ts";

/** Runs one of the programs. */
export type RunProgram = (program: Program, args: readonly string[], options: ExecOptions) => Promise<ExecResult>;

/**
 * The programs of the host: iptables and ip6tables in both variants, with `-restore` and `-save`, and `sysctl`, under whatever path, and nothing
 * else.
 *
 * Shape: names without a variant are those of `plain`.
 */
export function createIptablesExec(plain: IptablesVariant, sysctl: FakeSysctl, runProgram: RunProgram): Exec {
  const run = async (file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> => {
    if (options.signal?.aborted === true)
      throw new ProxyError("canceled", "the command was given up", { object: [file, ...args].join(" ") });
    const name = file.slice(file.lastIndexOf("/") + 1);
    if (name === "sysctl") return runSysctl(args, sysctl);
    const program = /^xtables-(?:nft|legacy)-multi$/.test(name) ? programOf(args[0] ?? "", plain) : programOf(name, plain);
    if (program === undefined) throw missing(file);
    return runProgram(program, name.startsWith("xtables") ? args.slice(1) : args, options);
  };
  return { run, open: (file, args) => startedLater(run, file, args) };
}

function programOf(name: string, plain: IptablesVariant): Program | undefined {
  const [, family, variant = plain, does = "change"] = /^(ip6?)tables(?:-(nft|legacy))?(?:-(restore|save))?$/.exec(name) ?? [];
  if (family === undefined) return undefined;
  return {
    family: family === "ip" ? "IPv4" : "IPv6",
    variant: variant as IptablesVariant,
    does: does as Program["does"],
    name,
  };
}

/** `sysctl -n NAME`, `sysctl -e NAME…` and `sysctl -q -w NAME=VALUE`. */
async function runSysctl(args: readonly string[], sysctl: FakeSysctl): Promise<ExecResult> {
  if (args[0] === "-e") {
    const results = await Promise.all(args.slice(1).map((name) => runSysctl([name], sysctl)));
    return { code: 0, stdout: results.map(({ stdout }) => stdout).join(""), stderr: "" };
  }
  const words = args.filter((word) => !word.startsWith("-"));
  const [name = "", value] = (words[0] ?? "").split("=", 2);
  try {
    if (args.includes("-w")) {
      await sysctl.write(name, value ?? "");
      return { code: 0, stdout: args.includes("-q") ? "" : `${name} = ${value}\n`, stderr: "" };
    }
    const read = await sysctl.read(name);
    return { code: 0, stdout: args.includes("-n") ? `${read}\n` : `${name} = ${read}\n`, stderr: "" };
  } catch (error) {
    if (!ProxyError.is(error, "not_found")) throw error;
    const path = `/proc/sys/${name.replaceAll(".", "/")}`;
    return { code: 255, stdout: "", stderr: `sysctl: cannot stat ${path}: No such file or directory\n` };
  }
}

function missing(file: string): ProxyError {
  return new ProxyError("tool_missing", `${file} is not installed`);
}
