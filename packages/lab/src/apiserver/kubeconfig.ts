import { stringify } from "yaml";

/** What a kubeconfig for the emulator says. */
export interface KubeconfigParts {
  readonly server: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca?: string | undefined;
  readonly token?: string | undefined;
  /** PEM pair the client shows. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string } | undefined;
}

/** Write a kubeconfig with one cluster, one user and one context, as YAML. */
export function kubeconfigFor(parts: KubeconfigParts): string {
  const authority = parts.ca === undefined ? {} : { "certificate-authority-data": base64(parts.ca) };
  const token = parts.token === undefined ? {} : { token: parts.token };
  const certificate =
    parts.clientCertificate === undefined
      ? {}
      : {
          "client-certificate-data": base64(parts.clientCertificate.cert),
          "client-key-data": base64(parts.clientCertificate.key),
        };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "lab", cluster: { server: parts.server, ...authority } }],
    users: [{ name: "proxy", user: { ...token, ...certificate } }],
    contexts: [{ name: "lab", context: { cluster: "lab", user: "proxy" } }],
    "current-context": "lab",
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
