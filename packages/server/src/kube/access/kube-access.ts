import type { PluginCredentials } from "./login-plugin.ts";

/** TLS material for a client; PEM. The same object as long as nothing changed. */
export interface TlsMaterial {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Name expected in the server's certificate instead of the URL's host. */
  readonly serverName: string | undefined;
  readonly isInsecure: boolean;
}

/** Where the API server is and how to speak to it, at one moment. */
export interface KubeEndpoint {
  /** May have a path, for servers behind a gateway. */
  readonly server: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
  /** Proxy by configuration; undefined: as the environment says. */
  readonly proxyUrl: URL | undefined;
  /** What the kubeconfig's login program gave; undefined: there is none. */
  readonly login: PluginCredentials | undefined;
}

/** The way to an API server with credentials that may change while it is used. */
export interface KubeAccess {
  /** For logs: where this comes from. Holds no secrets. */
  readonly description: string;
  /**
   * Give the endpoint as of now; cheap when no file changed.
   * @throws {ProxyError} `not_found`, `permission_denied` or `invalid_object` for files, `tool_failed` for login helpers.
   */
  endpoint(): Promise<KubeEndpoint>;
  /** Of the files that the endpoint was last made of: another text when one of them changed. Never throws. */
  stamp(): string;
  /** Read everything anew at the next use: the server didn't accept the credentials. */
  refresh(): void;
}

/** TLS with nothing special: system authorities, no client certificate. */
export const PLAIN_TLS: TlsMaterial = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  serverName: undefined,
  isInsecure: false,
};
