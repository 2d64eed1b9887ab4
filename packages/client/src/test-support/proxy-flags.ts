import { ProxyError } from "@turnout/core";
import { CommanderError } from "commander";
import type { RawFlags } from "../daemon/config/config-flags.ts";
import { switchOf } from "../daemon/config/config-kinds.ts";
import { argumentsOf, createCommand } from "../daemon/program/command-line.ts";
import { addNodeOptions, keepTyped, typedFlags } from "../daemon/program/options.ts";
import { addProxyOptions, type ProxyOptions } from "../daemon/program/run-proxy.ts";

/** Read the flags of a proxy as a program does, and run nothing. @throws {ProxyError} `invalid_object` for flags that are none. */
export function proxyFlags(args: readonly string[]): RawFlags {
  const ignore = (): void => undefined;
  const command = addProxyOptions(addNodeOptions(createCommand("proxy", { out: ignore, err: ignore })), "").option("--version [raw]");
  keepTyped(command);
  try {
    const { operands, unknown } = command.parseOptions([...argumentsOf(command, args)]);
    const [stray] = [...operands, ...unknown];
    if (stray !== undefined) throw new ProxyError("invalid_object", "it is no flag", { object: stray });
  } catch (error) {
    throw error instanceof CommanderError ? ProxyError.from(error, "invalid_object", "bad usage", {}) : error;
  }
  const { cleanup, initOnly } = command.opts<ProxyOptions>();
  for (const [name, said] of Object.entries({ cleanup, initOnly })) switchOf(name, said);
  return typedFlags(command);
}
