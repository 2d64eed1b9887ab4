import { existsSync } from "node:fs";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { isIPv6 } from "node:net";
import { PLAIN_TLS, type KubeAccess, type KubeEndpoint, type TlsMaterial } from "./kube-access.ts";
import { kubeconfigPaths, parseKubeconfig, serverAddress, type KubeconfigContext, type UserEntry } from "./kubeconfig.ts";
import { CachedFile } from "../../source/cached-file.ts";
import type { LoginPlugin, PluginCredentials } from "./login-plugin.ts";
import { openLoginPlugin } from "./open-login.ts";

/**
 * Access by kubeconfig; `master` overrides the server's address.
 *
 * Edges: the kubeconfig and every file it names are read again when they change on disk.
 */
class KubeconfigAccess implements KubeAccess {
  readonly description: string;
  readonly #files: readonly CachedFile[];
  readonly #master: string | undefined;
  readonly #named = new Map<string, CachedFile>();
  #texts: readonly string[] = [];
  #context: KubeconfigContext | undefined;
  #plugin: LoginPlugin | undefined;
  #tls: TlsMaterial | undefined;

  constructor(paths: readonly string[], master: string | undefined) {
    this.#files = paths.map((path) => new CachedFile(path, "the kubeconfig"));
    this.#master = master;
    this.description = `kubeconfig ${paths.join(", ")}`;
  }

  async endpoint(): Promise<KubeEndpoint> {
    const { cluster, user } = this.#load();
    const login = await this.#credentials(user);
    const authorization = login?.authorization ?? this.#authorization(user);
    return {
      server: cluster.server,
      headers: authorization === undefined ? {} : { authorization },
      tls: this.#keepTls({
        ca: this.#material(cluster.caData, cluster.caFile, "the certificate authority"),
        cert: login?.cert ?? this.#material(user.certData, user.certFile, "the client certificate"),
        key: login?.key ?? this.#material(user.keyData, user.keyFile, "the client key"),
        serverName: cluster.tlsServerName,
        isInsecure: cluster.isInsecure,
      }),
      proxyUrl: cluster.proxyUrl,
      login,
    };
  }

  stamp(): string {
    return [...this.#files, ...this.#named.values()].map((file) => file.stamp()).join(" ");
  }

  refresh(): void {
    for (const file of [...this.#files, ...this.#named.values()]) file.forget();
    this.#context = undefined;
    this.#plugin = undefined;
  }

  #load(): KubeconfigContext {
    const texts = this.#files.map((file) => file.text());
    if (this.#context !== undefined && texts.every((text, index) => text === this.#texts[index])) return this.#context;
    this.#context = parseKubeconfig(
      this.#files.map(({ path }, index) => ({ path, text: texts[index] ?? "" })),
      this.#master,
    );
    this.#texts = texts;
    this.#plugin = undefined;
    return this.#context;
  }

  async #credentials(user: UserEntry): Promise<PluginCredentials | undefined> {
    if (user.plugin === undefined) return undefined;
    this.#plugin ??= openLoginPlugin(user.plugin);
    return this.#plugin.credentials();
  }

  #authorization(user: UserEntry): string | undefined {
    // A token file wins over an inline token, as in client-go.
    const token = user.tokenFile === undefined ? user.token : this.#file(user.tokenFile, "the token file").text().trim();
    if (token !== undefined) return `Bearer ${token}`;
    if (user.username === undefined) return undefined;
    return `Basic ${Buffer.from(`${user.username}:${user.password ?? ""}`).toString("base64")}`;
  }

  #material(data: string | undefined, path: string | undefined, what: string): string | undefined {
    return data ?? (path === undefined ? undefined : this.#file(path, what).text());
  }

  #file(path: string, what: string): CachedFile {
    const file = this.#named.get(path) ?? new CachedFile(path, what);
    this.#named.set(path, file);
    return file;
  }

  #keepTls(next: TlsMaterial): TlsMaterial {
    const { ca, cert, key, serverName, isInsecure } = this.#tls ?? {};
    const isSame =
      ca === next.ca && cert === next.cert && key === next.key && serverName === next.serverName && isInsecure === next.isInsecure;
    if (!isSame || this.#tls === undefined) this.#tls = next;
    return this.#tls;
  }
}

/** Where kubelet puts a pod's service account. */
const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Access from inside a pod: token and authority are read again when kubelet swaps them.
 *
 * Edges: always TLS; an IPv6 host needs no brackets.
 */
class InClusterAccess implements KubeAccess {
  readonly description = "the pod's service account";
  readonly #server: URL;
  readonly #token: CachedFile;
  readonly #authority: CachedFile;
  #tls: TlsMaterial = PLAIN_TLS;

  /** @throws {ProxyError} `invalid_object` when host and port are no address. */
  constructor(host: string, port: string, directory: string) {
    const text = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const server = serverAddress(text, true);
    if (server === undefined) {
      const hint = "correct KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, or give --kubeconfig PATH";
      throw new ProxyError("invalid_object", "the pod's environment names no API server", { object: text, hint });
    }
    this.#server = server;
    this.#token = new CachedFile(`${directory}/token`, "the service account's token");
    this.#authority = new CachedFile(`${directory}/ca.crt`, "the cluster's certificate authority");
  }

  async endpoint(): Promise<KubeEndpoint> {
    const ca = this.#authority.text();
    if (ca !== this.#tls.ca) this.#tls = { ...PLAIN_TLS, ca };
    const headers = { authorization: `Bearer ${this.#token.text().trim()}` };
    return { server: this.#server, headers, tls: this.#tls, proxyUrl: undefined, login: undefined };
  }

  stamp(): string {
    return `${this.#token.stamp()} ${this.#authority.stamp()}`;
  }

  refresh(): void {
    this.#token.forget();
    this.#authority.forget();
  }
}

/** What decides how the API server is reached. */
export interface AccessOptions {
  /** `--kubeconfig`. */
  readonly kubeconfig?: string | undefined;
  /** `--master`: overrides the server's address; alone it means access without credentials. */
  readonly master?: string | undefined;
  /** Environment: KUBECONFIG, KUBERNETES_SERVICE_HOST and _PORT, HOME, CONTAINER_SANDBOX_MOUNT_POINT, and the proxy variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default {@link SERVICE_ACCOUNT_DIR}, or in a HostProcess pod of Windows where its volumes are. */
  readonly serviceAccountDir?: string | undefined;
}

/**
 * Choose the way to the API server: `--kubeconfig`, KUBECONFIG, `--master` alone, the pod's service account,
 * then ~/.kube/config; the first that is there.
 *
 * @throws {ProxyError} `invalid_object` for a bad `--master` or KUBERNETES_SERVICE_HOST and _PORT; `not_found` when there is none of them.
 */
export function resolveAccess(options: AccessOptions): KubeAccess {
  const { env, master } = options;
  const anonymousServer = master === undefined ? undefined : serverAddress(master, false);
  if (master !== undefined && anonymousServer === undefined) {
    throw new ProxyError("invalid_object", "--master is not an address", { object: master, hint: "write https://HOST:PORT" });
  }
  if (options.kubeconfig !== undefined) return new KubeconfigAccess([options.kubeconfig], master);
  const paths = kubeconfigPaths(env["KUBECONFIG"] ?? "");
  if (paths.length > 0) return new KubeconfigAccess(paths, master);
  if (anonymousServer !== undefined) return anonymousAccess(anonymousServer);
  // Empty means absent, as in client-go.
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = env;
  if (host !== "" && port !== "") {
    return new InClusterAccess(host, port, options.serviceAccountDir ?? serviceAccountDir(env));
  }
  const home = join(env["HOME"] ?? "/root", ".kube", "config");
  if (existsSync(home)) return new KubeconfigAccess([home], undefined);
  throw new ProxyError("not_found", "no Kubernetes API server is configured", {
    hint: "give --kubeconfig PATH or --master URL, set KUBECONFIG, run in a pod, or use --source file:PATH",
  });
}

/**
 * Where the service account is. Volumes of a HostProcess pod are below a folder of its own with containerd 1.6, and at their own paths from 1.7 on, which
 * sets the variable all the same (kubernetes/kubernetes#104562).
 */
function serviceAccountDir(env: AccessOptions["env"]): string {
  const mounts = env["CONTAINER_SANDBOX_MOUNT_POINT"];
  if (mounts === undefined) return SERVICE_ACCOUNT_DIR;
  const below = join(mounts, SERVICE_ACCOUNT_DIR);
  return existsSync(below) ? below : SERVICE_ACCOUNT_DIR;
}

function anonymousAccess(server: URL): KubeAccess {
  const endpoint = { server, headers: {}, tls: PLAIN_TLS, proxyUrl: undefined, login: undefined };
  return { description: `--master ${server.origin}`, endpoint: async () => endpoint, stamp: () => "", refresh: () => undefined };
}
