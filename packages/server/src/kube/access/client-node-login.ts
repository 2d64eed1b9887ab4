import { createRequire } from "node:module";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { ProxyError } from "@turnout/core";
import { execLogin } from "./exec-login.ts";
import type { LoginPlugin } from "./login-plugin.ts";

const PACKAGE = "@kubernetes/client-node";

/**
 * Log in by an auth-provider that only `@kubernetes/client-node` has. That is an optional peer of this package: who needs it installs it.
 *
 * Edges: it is loaded by a process of its own for each login. Its logins block the process that asks for them, without limit, and loading it takes 80 MB.
 * @param from - Address of the module that the package is looked for from.
 * @throws {ProxyError} `tool_missing` when it is not installed; `hint` says what would do instead.
 */
export function clientNodeLogin(provider: Readonly<Record<string, unknown>>, hint: string, from: string = import.meta.url): LoginPlugin {
  const name = `auth-provider ${String(provider["name"])}`;
  try {
    createRequire(from).resolve(PACKAGE);
  } catch (error) {
    const what = `the kubeconfig's login needs the package ${PACKAGE}, which is not installed`;
    throw new ProxyError("tool_missing", what, { object: name, hint: `npm install ${PACKAGE}@2, or ${hint}`, cause: error });
  }
  const program = fileURLToPath(new URL(`./client-node-main${extname(import.meta.url)}`, import.meta.url));
  const env = [{ name: "TURNOUT_AUTH_PROVIDER", value: JSON.stringify(provider) }];
  return execLogin({ apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: [program], env }, name);
}
