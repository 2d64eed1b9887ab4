import { KubeConfig } from "@kubernetes/client-node";

/** A login whose end is not known is repeated after this time. */
const UNKNOWN_END_MS = 60_000;

/** Logs in by `@kubernetes/client-node`, as the auth-provider in its environment says, and prints an ExecCredential. Run by client-node-login.ts. */
async function main(): Promise<void> {
  const { TURNOUT_AUTH_PROVIDER: provider = "", KUBERNETES_EXEC_INFO: asked = "" } = process.env;
  const config = new KubeConfig();
  const { name, config: settings } = JSON.parse(provider) as { name: string; config: Record<string, unknown> };
  const user = { name: "user", authProvider: { name, config: settings } };
  config.loadFromClusterAndUser({ name: "cluster", server: "https://kubernetes", skipTLSVerify: false }, user);
  const options: { headers: Record<string, string | undefined> } = { headers: {} };
  await config.applyToHTTPSOptions(options);
  // A new login writes its end into the configuration.
  const expires = settings["expiry"] ?? (settings["expires-on"] === undefined ? undefined : Number(settings["expires-on"]) * 1_000);
  const status = {
    token: options.headers["Authorization"]?.replace("Bearer ", ""),
    expirationTimestamp: new Date((expires as string | number | undefined) ?? Date.now() + UNKNOWN_END_MS),
  };
  process.stdout.write(JSON.stringify({ ...(JSON.parse(asked) as object), status }));
}

main().catch((error: unknown) => {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
