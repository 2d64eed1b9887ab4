import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ProxyError } from "@turnout/core";
import { isRecord } from "../../source/raw-object.ts";
import type { LoginPlugin, PluginCredentials } from "./login-plugin.ts";

/** A program that waits for somebody at a terminal must not stop the feed for ever; client-go itself sets no limit. */
const PROGRAM_TIMEOUT_MS = 60_000;

interface Kept extends PluginCredentials {
  /** Undefined: valid until the API server refuses them. */
  readonly expiresMs: number | undefined;
}

/**
 * Log in by a program that prints an ExecCredential, as client-go's exec plug-in does. What it gave is kept until it expires.
 *
 * Edges: `provideClusterInfo` is not supported; the program is never given a terminal.
 * @param exec - As in the kubeconfig, with an absolute command or a bare name.
 * @param name - What errors call it; default: the command.
 */
export function execLogin(exec: Readonly<Record<string, unknown>>, name: string = String(exec["command"])): LoginPlugin {
  let kept: Promise<Kept> | undefined;
  return {
    async credentials(): Promise<PluginCredentials> {
      const before = await kept;
      if (before?.expiresMs !== undefined && before.expiresMs <= Date.now()) kept = undefined;
      kept ??= ask(exec, name);
      try {
        return await kept;
      } catch (error) {
        kept = undefined;
        throw error;
      }
    },
  };
}

async function ask(exec: Readonly<Record<string, unknown>>, name: string): Promise<Kept> {
  const info = { kind: "ExecCredential", apiVersion: exec["apiVersion"], spec: { interactive: false } };
  const env = { ...process.env, ...environmentOf(exec["env"]), KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  const args = Array.isArray(exec["args"]) ? exec["args"].map(String) : [];
  if (exec["interactiveMode"] === "Always") throw failed(name, "the login program needs a terminal", "set its interactiveMode to Never");
  const options = { env, timeout: PROGRAM_TIMEOUT_MS, maxBuffer: 2 ** 24 };
  const { stdout } = await promisify(execFile)(String(exec["command"]), args, options).catch((error: unknown) => {
    const hint = typeof exec["installHint"] === "string" ? exec["installHint"] : "run the kubeconfig's login command by hand";
    throw ProxyError.from(error, "tool_failed", "the login of the kubeconfig's user failed", { object: name, hint });
  });
  return credentialOf(stdout, name, exec["apiVersion"]);
}

/** What an ExecCredential gives. @throws {ProxyError} `tool_failed` for anything else, or one of another version than was asked for. */
function credentialOf(text: string, command: string, apiVersion: unknown): Kept {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "the login program printed no JSON", { object: command });
  }
  if (!isRecord(said) || said["kind"] !== "ExecCredential" || said["apiVersion"] !== apiVersion) {
    throw failed(
      command,
      `the login program printed no ExecCredential of ${String(apiVersion)}`,
      "set apiVersion to the one that it knows",
    );
  }
  const status = isRecord(said["status"]) ? said["status"] : {};
  const [token, cert, key, expires] = ["token", "clientCertificateData", "clientKeyData", "expirationTimestamp"].map((field) =>
    typeof status[field] === "string" && status[field] !== "" ? status[field] : undefined,
  );
  if (token === undefined && (cert === undefined || key === undefined)) {
    throw failed(command, "the login program gave neither a token nor a certificate with its key", "run it by hand");
  }
  const expiresMs = expires === undefined ? undefined : Date.parse(expires);
  if (Number.isNaN(expiresMs)) throw failed(command, `the login program gave no time as expirationTimestamp: ${expires}`, "run it by hand");
  return { authorization: token === undefined ? undefined : `Bearer ${token}`, cert, key, expiresMs };
}

function environmentOf(listed: unknown): Readonly<Record<string, string>> {
  const entries = (Array.isArray(listed) ? (listed as readonly unknown[]) : []).filter(isRecord);
  return Object.fromEntries(entries.map(({ name, value }) => [String(name), String(value)]));
}

function failed(command: string, what: string, hint: string): ProxyError {
  return new ProxyError("tool_failed", what, { object: command, hint });
}
