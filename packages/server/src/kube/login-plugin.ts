import { ProxyError } from "@turnout/core";
import { isRecord } from "../source/raw-object.ts";

/** What a login program gave. */
export interface PluginCredentials {
  /** Value of the Authorization header. */
  readonly authorization: string | undefined;
  /** PEM. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** A way to log in that client-node knows: exec programs and OIDC, GCP or Azure auth providers. */
export interface LoginPlugin {
  /** Give credentials that are valid now; the plug-in keeps them until they expire. @throws {ProxyError} `tool_failed`. */
  credentials(): Promise<PluginCredentials>;
}

/**
 * Load client-node for a user that logs in through a plug-in.
 *
 * Edges: imported here and nowhere else: client-node costs 84 MB of memory, which a node daemon rarely needs.
 * @throws {ProxyError} `tool_failed` when client-node can't be loaded.
 */
export async function openLoginPlugin(user: Readonly<Record<string, unknown>>, server: string): Promise<LoginPlugin> {
  const { KubeConfig } = await import("@kubernetes/client-node").catch((error: unknown) => {
    throw ProxyError.from(error, "tool_failed", "can't load @kubernetes/client-node for this kubeconfig's login");
  });
  const config = new KubeConfig();
  config.loadFromString(
    JSON.stringify({
      clusters: [{ name: "cluster", cluster: { server } }],
      users: [{ name: "user", user: withExecInfo(user) }],
      contexts: [{ name: "context", context: { cluster: "cluster", user: "user" } }],
      "current-context": "context",
    }),
  );
  return {
    async credentials(): Promise<PluginCredentials> {
      const options: { headers?: Record<string, string>; cert?: unknown; key?: unknown } = {};
      try {
        await config.applyToHTTPSOptions(options as Parameters<typeof config.applyToHTTPSOptions>[0]);
      } catch (error) {
        const hint = "run the kubeconfig's login command by hand";
        throw ProxyError.from(error, "tool_failed", "the login of the kubeconfig's user failed", { hint });
      }
      return { authorization: options.headers?.["Authorization"], cert: pem(options.cert), key: pem(options.key) };
    },
  };
}

/** Add what exec programs expect in their environment and client-node leaves out. */
function withExecInfo(user: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { exec } = user;
  if (!isRecord(exec)) return user;
  const info = { kind: "ExecCredential", apiVersion: exec["apiVersion"], spec: { interactive: false } };
  const given: readonly unknown[] = Array.isArray(exec["env"]) ? exec["env"] : [];
  const env = [...given, { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) }];
  return { ...user, exec: { ...exec, env } };
}

function pem(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return Buffer.isBuffer(value) ? value.toString("utf8") : undefined;
}
