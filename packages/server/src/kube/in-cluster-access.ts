import { isIPv6 } from "node:net";
import { ProxyError } from "@turnout/core";
import { CachedFile } from "../source/cached-file.ts";
import { PLAIN_TLS, type KubeAccess, type KubeEndpoint, type TlsMaterial } from "./kube-access.ts";
import { serverAddress } from "./server-address.ts";

/** Where kubelet puts a pod's service account. */
export const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Access from inside a pod: token and authority are read again when kubelet swaps them.
 *
 * Edges: always TLS; an IPv6 host needs no brackets.
 */
export class InClusterAccess implements KubeAccess {
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
