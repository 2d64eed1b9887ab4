/** What a login gave. */
export interface PluginCredentials {
  /** Value of the Authorization header. */
  readonly authorization: string | undefined;
  /** PEM. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** A way to log in: an exec program, or an OpenID Connect provider. */
export interface LoginPlugin {
  /** Give credentials that are valid now; the plug-in keeps them until they expire. @throws {ProxyError} `tool_failed`. */
  credentials(): Promise<PluginCredentials>;
}
