import { ProxyError } from "@turnout/core";
import { isRecord } from "../../source/raw-object.ts";
import { clientNodeLogin } from "./client-node-login.ts";
import { execLogin } from "./exec-login.ts";
import type { LoginPlugin } from "./login-plugin.ts";
import { oidcLogin } from "./oidc-login.ts";

/** What only client-node has. The first two are what client-go knew until Kubernetes 1.26, and what its error says to use instead. */
const OF_CLIENT_NODE: Readonly<Record<string, string>> = {
  gcp: "log in by the exec program gke-gcloud-auth-plugin",
  azure: "log in by the exec program kubelogin",
  exec: "write exec, not an auth-provider",
  tokenFile: "write tokenFile, not an auth-provider",
};

/**
 * The way in which a user of a kubeconfig logs in; those of client-go, and with `@kubernetes/client-node` its auth-providers, too.
 *
 * Edges: `exec` wins over `auth-provider`. `from` is as of {@link clientNodeLogin}.
 * @throws {ProxyError} `invalid_object` for an auth-provider that neither has; `tool_missing` for one of client-node when it is not installed.
 */
export function openLoginPlugin(user: Readonly<Record<string, unknown>>, from?: string): LoginPlugin {
  const { exec, "auth-provider": provider } = user;
  if (isRecord(exec)) return execLogin(exec);
  const { name, config } = isRecord(provider) ? provider : {};
  const settings = isRecord(config) ? config : {};
  if (name === "oidc") return oidcLogin(settings);
  const kind = ["exec", "tokenFile"].find((field) => field in settings) ?? String(name);
  const instead = Object.hasOwn(OF_CLIENT_NODE, kind) ? OF_CLIENT_NODE[kind] : undefined;
  if (instead !== undefined) return clientNodeLogin({ name, config: settings }, instead, from);
  throw new ProxyError("invalid_object", "the kubeconfig has an auth-provider that Kubernetes does not know", {
    object: String(name),
    hint: "use exec, or the auth-provider oidc",
  });
}
