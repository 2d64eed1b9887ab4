import { X509Certificate } from "node:crypto";
import type { ExecPluginCallStatus, RestClientMetrics } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import type { KubeEndpoint } from "./kube-access.ts";
import type { PluginCredentials } from "./login-plugin.ts";

/** What the last endpoint was made with. */
interface Known {
  readonly login: PluginCredentials | undefined;
  readonly ca: string | undefined;
}

/**
 * Tells metrics what becomes of a client's credentials: calls of a login program, its certificate, another certificate authority.
 *
 * Edges: a login program keeps quiet about its calls, so a call counts when other credentials came of it, or when it failed.
 */
export class AccessMeter {
  readonly #metrics: RestClientMetrics | undefined;
  #known: Known | undefined;

  constructor(metrics: RestClientMetrics | undefined) {
    this.#metrics = metrics;
  }

  /** The endpoint is this now. */
  given({ login, tls }: KubeEndpoint, nowMs: number): void {
    const metrics = this.#metrics;
    if (metrics === undefined) return;
    const before = this.#known;
    this.#known = { login, ca: tls.ca };
    if (before !== undefined && before.ca !== tls.ca) metrics.authoritiesReloaded();
    if (login === undefined || isSame(login, before?.login)) return;
    metrics.pluginCalled(0, "no_error");
    const certificate = readCertificate(login.cert);
    const old = readCertificate(before?.login?.cert);
    metrics.pluginCertificateExpires(certificate?.validToDate.getTime());
    if (old !== undefined && login.cert !== before?.login?.cert) metrics.pluginCertificateRotated(nowMs - old.validFromDate.getTime());
  }

  /** There is no endpoint: `error` says why. */
  failed(error: unknown): void {
    if (!ProxyError.is(error, "tool_failed")) return;
    this.#metrics?.pluginCalled(1, statusOf(error));
  }
}

function isSame(one: PluginCredentials, other: PluginCredentials | undefined): boolean {
  return other !== undefined && one.authorization === other.authorization && one.cert === other.cert && one.key === other.key;
}

/** Whether its certificate can be used is told where that is tried. */
function readCertificate(pem: string | undefined): X509Certificate | undefined {
  try {
    return pem === undefined ? undefined : new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function statusOf({ cause }: ProxyError): ExecPluginCallStatus {
  return cause instanceof Error && /ENOENT/.test(cause.message) ? "plugin_not_found_error" : "plugin_execution_error";
}
