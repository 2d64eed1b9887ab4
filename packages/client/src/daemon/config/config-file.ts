import { ProxyError } from "@turnout/core";
import type { FileText } from "./loaded-config.ts";

/** Read what --config names; nothing where it is not given, or given as "". @throws {ProxyError} `invalid_object` when it can't be read. */
export async function readConfigFile(path: string | undefined, readFile: (path: string) => Promise<string>): Promise<FileText | undefined> {
  if (path === undefined || path === "") return undefined;
  try {
    return { path, text: await readFile(path) };
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "the configuration file can't be read", { object: path });
  }
}

/** Write what --write-config-to names. @throws {ProxyError} `tool_failed` when it can't be written. */
export async function writeConfigFile(path: string, text: string, writeFile: (path: string, text: string) => Promise<void>): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "the configuration can't be written", { object: path });
  }
}
