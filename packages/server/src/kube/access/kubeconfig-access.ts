import { CachedFile } from "../../source/cached-file.ts";
import type { KubeAccess, KubeEndpoint, TlsMaterial } from "./kube-access.ts";
import { parseKubeconfig, type KubeconfigContext, type UserEntry } from "./kubeconfig.ts";
import type { LoginPlugin, PluginCredentials } from "./login-plugin.ts";
import { openLoginPlugin } from "./open-login.ts";

/**
 * Access by kubeconfig; `master` overrides the server's address.
 *
 * Edges: the kubeconfig and every file it names are read again when they change on disk.
 */
export class KubeconfigAccess implements KubeAccess {
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
