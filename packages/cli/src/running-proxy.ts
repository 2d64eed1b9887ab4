import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { parseBindAddress, type BindAddress } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import type { Command } from "commander";

/** Where a proxy serves metrics that was not told otherwise, and where with an IPv6 --bind-address. */
const DEFAULTS: readonly BindAddress[] = [
  { ip: "127.0.0.1", port: 10_249 },
  { ip: "::1", port: 10_249 },
];
const ANSWER_MS = 10_000;
const ANSWER_BYTES_MAX = 64 * 2 ** 20;

/** Which proxy is meant. */
export interface RunningProxyOptions {
  readonly address?: string;
}

/** Add --address. */
export function addAddress(command: Command): Command {
  return command.option(
    "--address <address>",
    "the proxy's --metrics-bind-address (default: 127.0.0.1:10249; a backend's own program, and turnout serve: what they were told)",
  );
}

/**
 * Ask the proxy that runs on this host, over its metrics port.
 *
 * Shape: `path` with its query, e.g. `/turnout/status`; resolves to the JSON that it answered.
 * @throws {ProxyError} `not_found` where nobody answers, or not Turnout; `invalid_object` for an address that is none, or a question that it
 * refuses; `permission_denied` from another host.
 */
export async function askProxy({ address }: RunningProxyOptions, path: string, signal: AbortSignal): Promise<unknown> {
  const places = address === undefined ? DEFAULTS : [placeOf(address)];
  const failures: Error[] = [];
  for (const place of places) {
    try {
      return await ask(place, path, signal);
    } catch (error) {
      if (ProxyError.is(error) || signal.aborted) throw error;
      failures.push(error as Error);
    }
  }
  throw new ProxyError("not_found", `no proxy answers (${failures[0]?.message ?? "unreachable"})`, {
    object: places.map(hostPort).join(", "),
    hint: 'is it running on this host, in this network namespace? see its log for "serving metrics", and pass that address with --address',
    cause: failures[0],
  });
}

function placeOf(said: string): BindAddress {
  const place = parseBindAddress(said, DEFAULTS[0]?.port ?? 0);
  if (place === undefined)
    throw new ProxyError("invalid_object", `"${said}" is no address`, { object: "--address", hint: "write IP:PORT, e.g. 127.0.0.1:10249" });
  // What listens on every address listens on loopback.
  if (place.ip === "0.0.0.0") return { ...place, ip: "127.0.0.1" };
  return place.ip === "::" ? { ...place, ip: "::1" } : place;
}

function hostPort({ ip, port }: BindAddress): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}

/** @throws what the socket failed with: nobody is there. */
async function ask(place: BindAddress, path: string, signal: AbortSignal): Promise<unknown> {
  const { status, body } = await fetchText(place, path, signal);
  const object = hostPort(place);
  if (status === 200) return parsed(body, object);
  const said = body.trim().split("\n", 1)[0] ?? "";
  if (status === 404)
    throw new ProxyError("not_found", "what answers there is no Turnout, or one that is older", {
      object: `${object}${path}`,
      hint: "kube-proxy has the same port; see who listens with ss -tlnp",
    });
  if (status === 403) throw new ProxyError("permission_denied", said, { object });
  throw new ProxyError(status === 400 ? "invalid_object" : "tool_failed", said === "" ? `it answered ${status}` : said, { object });
}

function parsed(body: string, object: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch (cause) {
    throw new ProxyError("not_found", "what answers there is no Turnout", { object, cause });
  }
}

async function fetchText(
  { ip, port }: BindAddress,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly body: string }> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: ip, port, path, signal: limit, agent: false, headers: { accept: "application/json" } }, resolve).on("error", reject);
  });
  let size = 0;
  response.on("data", (piece: Buffer) => {
    size += piece.length;
    if (size > ANSWER_BYTES_MAX) response.destroy(new Error("the answer is too long"));
  });
  return { status: response.statusCode ?? 0, body: await text(response) };
}
