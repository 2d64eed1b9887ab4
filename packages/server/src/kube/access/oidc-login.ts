import { readFile } from "node:fs/promises";
import type { Agent, IncomingMessage } from "node:http";
import { request as tlsRequest } from "node:https";
import { text as textOf } from "node:stream/consumers";
import { ProxyError } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { isRecord } from "../../source/raw-object.ts";
import type { LoginPlugin, PluginCredentials } from "./login-plugin.ts";
import { createAgent } from "./proxied-agent.ts";
import { proxyFromEnvironment } from "./proxy-rules.ts";

// Not imported: an import reads all exports of node:http, of which one loads undici.
const { request: plainRequest } = process.getBuiltinModule("node:http");

/** As client-go: a token that ends so soon is not used any more. */
const EXPIRES_EARLIER_MS = 10_000;
const ANSWER_WITHIN_MS = 30_000;

type Config = Readonly<Record<string, unknown>>;

/**
 * Log in by OpenID Connect, as client-go's auth-provider `oidc` does: the kubeconfig's id-token while it is valid, then one that the
 * refresh token gets.
 *
 * Edges: what the provider gives is kept in memory; the kubeconfig is not written. A provider with https is reached through the proxy of the environment.
 */
export function oidcLogin(config: Config): LoginPlugin {
  let idToken = field(config, "id-token");
  let refreshToken = field(config, "refresh-token");
  let under: Promise<void> | undefined;
  const refresh = async (): Promise<void> => {
    if (refreshToken === undefined) throw failed("the id-token has expired, and there is no refresh-token", "log in again with kubectl");
    const issuer = field(config, "idp-issuer-url") ?? "";
    const ca = await authorityOf(config);
    const found = await ask(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, ca);
    const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken }).toString();
    const who = [field(config, "client-id") ?? "", field(config, "client-secret") ?? ""].map(encodeURIComponent).join(":");
    const given = await ask(String(found["token_endpoint"]), ca, { form, authorization: `Basic ${Buffer.from(who).toString("base64")}` });
    idToken = field(given, "id_token");
    refreshToken = field(given, "refresh_token") ?? refreshToken;
    if (idToken === undefined) throw failed("the identity provider gave no id_token", "see what its client may ask for");
  };
  return {
    async credentials(): Promise<PluginCredentials> {
      if (!isValid(idToken)) {
        under ??= refresh().finally(() => (under = undefined));
        await under;
      }
      return { authorization: `Bearer ${idToken ?? ""}`, cert: undefined, key: undefined };
    },
  };
}

/** Whether a JSON Web Token has not expired; its signature is the API server's business. */
function isValid(token: string | undefined): boolean {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token?.split(".")[1] ?? "", "base64url").toString("utf8"));
    return isRecord(claims) && Number(claims["exp"]) * 1000 > Date.now() + EXPIRES_EARLIER_MS;
  } catch {
    // No token: the refresh token gets one, or the error says that there is none.
    return false;
  }
}

async function authorityOf(config: Config): Promise<string | undefined> {
  const data = field(config, "idp-certificate-authority-data");
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const path = field(config, "idp-certificate-authority");
  return path === undefined ? undefined : readFile(path, "utf8");
}

interface Form {
  readonly form: string;
  readonly authorization: string;
}

/** Ask the identity provider. @throws {ProxyError} `tool_failed` when it does not answer with a JSON object. */
async function ask(url: string, ca: string | undefined, post?: Form): Promise<Config> {
  try {
    const answer = await send(url, ca, post);
    const body = await textOf(answer);
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode ?? 0} ${body.slice(0, 500)}`);
    const said: unknown = JSON.parse(body);
    if (!isRecord(said)) throw new Error("no JSON object");
    return said;
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "the identity provider refused the login", {
      object: url,
      hint: "log in again with kubectl",
    });
  }
}

function send(url: string, ca: string | undefined, post: Form | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = post === undefined ? {} : { authorization: post.authorization, "content-type": "application/x-www-form-urlencoded" };
    const options = { method: post === undefined ? "GET" : "POST", headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) };
    const request = url.startsWith("http:")
      ? plainRequest(url, options)
      : tlsRequest(url, { ...options, agent: agentFor(new URL(url), ca) });
    request.on("response", resolve).on("error", reject).end(post?.form);
  });
}

function agentFor(url: URL, ca: string | undefined): Agent {
  const options = ca === undefined ? {} : { ca };
  const proxy = proxyFromEnvironment(url, process.env);
  return createAgent({ isTls: true, options, proxy, clock: systemClock(), connectTimeoutMs: ANSWER_WITHIN_MS });
}

function field(of: Config, name: string): string | undefined {
  const value = of[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function failed(what: string, hint: string): ProxyError {
  return new ProxyError("tool_failed", what, { object: "auth-provider oidc", hint });
}
