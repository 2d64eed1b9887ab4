import { ProxyError } from "@turnout/core";
import { isRecord } from "../source/raw-object.ts";
import { execLogin } from "./exec-login.ts";
import type { LoginPlugin } from "./login-plugin.ts";
import { oidcLogin } from "./oidc-login.ts";

/** What client-go knew until Kubernetes 1.26, and what its error says to use instead. */
const GONE: Readonly<Record<string, string>> = {
  gcp: "log in by the exec program gke-gcloud-auth-plugin",
  azure: "log in by the exec program kubelogin",
};

/**
 * The way in which a user of a kubeconfig logs in; those of client-go.
 *
 * Edges: `exec` wins over `auth-provider`.
 * @throws {ProxyError} `invalid_object` for an auth-provider that client-go has not, or no longer.
 */
export function openLoginPlugin(user: Readonly<Record<string, unknown>>): LoginPlugin {
  const { exec, "auth-provider": provider } = user;
  if (isRecord(exec)) return execLogin(exec);
  const name = isRecord(provider) ? String(provider["name"]) : "";
  if (isRecord(provider) && name === "oidc") return oidcLogin(isRecord(provider["config"]) ? provider["config"] : {});
  throw new ProxyError("invalid_object", "the kubeconfig has an auth-provider that Kubernetes does not know", {
    object: name,
    hint: GONE[name] ?? "use exec, or the auth-provider oidc",
  });
}
