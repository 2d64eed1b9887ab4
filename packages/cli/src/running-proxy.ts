import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { parseBindAddress, whySocketPaths, type BindAddress } from "@turnout/client/daemon";
import { hostPort, ProxyError } from "@turnout/core";
import type { Command } from "commander";
import { withPresentNames } from "./output-json.ts";

/** Where a proxy serves metrics that was not told otherwise, and where with an IPv6 --bind-address. */
const DEFAULTS: readonly BindAddress[] = [
  { ip: "127.0.0.1", port: 10_249 },
  { ip: "::1", port: 10_249 },
];
// Not by an import: that reads all of the module's exports, and `WebSocket` is a getter that loads undici, 40 ms of CPU time and 10 MB.
const { get } = process.getBuiltinModule("node:http");
const ANSWER_MS = 10_000;
/**
 * A proxy that runs says that it does within this time, however long it takes to answer: a large iptables is listed by the tool, and meanwhile the proxy has time.
 * On a busy host a sound one needs more than a second at times.
 */
const ALIVE_MS = 3_000;
/** Costs the proxy nothing. What it answers does not matter. */
const ALIVE_PATH = "/healthz";
/** How it is told that nobody was reached, so that nothing is known of a proxy. */
export const UNREACHED = "connecting to the proxy timed out";
const GONE_HINT =
  'is it running on this host, in this network namespace? see its log for "serving metrics", and pass that address with --address';
const ANSWER_BYTES_MAX = 64 * 2 ** 20;

/** Which proxy is meant. */
export interface RunningProxyOptions {
  readonly address?: string;
}

/** How to ask. */
export interface AskHow {
  /** Default 10 s. */
  readonly waitMs?: number;
  /** What to do where nobody answers. */
  readonly hint?: string;
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
 * @throws {ProxyError} `not_found` where nobody answers, or not Turnout; `timed_out` where somebody is there and says nothing; `invalid_object` for an
 * address that is none, or a question that it refuses; `permission_denied` from another host; `canceled` by the signal.
 */
export async function askProxy({ address }: RunningProxyOptions, path: string, signal: AbortSignal, how: AskHow = {}): Promise<unknown> {
  return await askAt(address === undefined ? DEFAULTS : [placeOf(address)], path, signal, how);
}

/**
 * Ask the proxy that runs on this host as {@link askProxy} does, over the socket that only its user and root may use: for what takes much of its time.
 * @throws {ProxyError} as that.
 */
export async function askProxySocket(
  { address }: RunningProxyOptions,
  path: string,
  signal: AbortSignal,
  how: AskHow = {},
): Promise<unknown> {
  const [{ port } = { port: 0 }] = address === undefined ? DEFAULTS : [placeOf(address)];
  return await askAt(
    (await whySocketPaths(port)).map((socketPath) => ({ socketPath })),
    path,
    signal,
    how,
  );
}

async function askAt(
  places: readonly Place[],
  path: string,
  signal: AbortSignal,
  { waitMs = ANSWER_MS, hint = GONE_HINT }: AskHow,
): Promise<unknown> {
  const failures: Error[] = [];
  for (const place of places) {
    try {
      return await ask(place, path, signal, waitMs);
    } catch (error) {
      if (error instanceof LateError) throw lateError(place, error, await stoppedProxies());
      if (ProxyError.is(error)) throw error;
      if (signal.aborted)
        throw new ProxyError("canceled", "told to stop before the proxy answered", { object: placeText(place), cause: error });
      failures.push(error as Error);
    }
  }
  throw new ProxyError("not_found", `no proxy answers (${failures[0]?.message ?? "unreachable"})`, {
    object: places.map(placeText).join(", "),
    hint,
    cause: failures[0],
  });
}

/** Where a proxy is asked. */
type Place = BindAddress | { readonly socketPath: string };

const placeText = (place: Place): string => ("ip" in place ? hostPort(place.ip, place.port) : place.socketPath);

function placeOf(said: string): BindAddress {
  const place = parseBindAddress(said, DEFAULTS[0]?.port ?? 0);
  if (place === undefined)
    throw new ProxyError("invalid_object", `"${said}" is no address`, { object: "--address", hint: "write IP:PORT, e.g. 127.0.0.1:10249" });
  // What listens on every address listens on loopback.
  if (place.ip === "0.0.0.0") return { ...place, ip: "127.0.0.1" };
  return place.ip === "::" ? { ...place, ip: "::1" } : place;
}

/** @throws {LateError}, and what the socket failed with: nobody is there. */
async function ask(place: Place, path: string, signal: AbortSignal, waitMs: number): Promise<unknown> {
  const { status, body } = await fetchOfLiving(place, path, signal, waitMs);
  const object = placeText(place);
  if (status === 200) return parsed(body, object);
  const said = body.trim().split("\n", 1)[0] ?? "";
  if (status === 404)
    throw new ProxyError("not_found", "what answers there is no Turnout, or one that is older", {
      object: `${object}${path}`,
      hint: "kube-proxy has the same port; see who listens with ss -tlnp",
    });
  if (status === 403) throw new ProxyError("permission_denied", said, { object });
  // What it says of the question is not about the place where it was asked.
  if (status === 400 && said !== "") throw new ProxyError("invalid_object", said);
  throw new ProxyError("tool_failed", said === "" ? `it answered ${status}` : said, { object });
}

function parsed(body: string, object: string): unknown {
  try {
    return JSON.parse(body, withPresentNames) as unknown;
  } catch (cause) {
    throw new ProxyError("not_found", "what answers there is no Turnout", { object, cause });
  }
}

/** Nothing came in time. */
export class LateError extends Error {
  readonly waitMs: number;
  /** The kernel accepts for a process that does nothing any more, too. */
  readonly isConnected: boolean;

  constructor(waitMs: number, isConnected: boolean) {
    super("late");
    this.waitMs = waitMs;
    this.isConnected = isConnected;
  }
}

/** Say why nothing came in time. Pure; `stopped` are Turnouts here that somebody stopped. */
export function lateError(
  place: Place,
  { waitMs, isConnected }: Pick<LateError, "waitMs" | "isConnected">,
  stopped: readonly number[],
): ProxyError {
  const [object, seconds] = [placeText(place), waitMs / 1_000];
  if (!isConnected)
    return new ProxyError("timed_out", `${UNREACHED} after ${seconds} s`, {
      object,
      hint: "rules of a firewall drop packets on loopback (a port on which nobody listens would have refused at once): turnout doctor names them",
    });
  const effect = "until then no change of a Service or endpoint comes into force. turnout doctor says more";
  if (stopped.length > 0)
    return new ProxyError(
      "timed_out",
      `the proxy accepts connections and does not answer: its process is stopped (pid ${stopped.join(", ")}, state T)`,
      { object, hint: `kill -CONT ${stopped.join(" ")} has it go on; ${effect}` },
    );
  return new ProxyError("timed_out", `the proxy accepts connections but did not answer for ${seconds} s: it hangs or is stopped`, {
    object,
    hint: `see its log, and the state of its process in ps aux (T: somebody stopped it); ${effect}`,
  });
}

/** The process ids of Turnouts here that somebody stopped; none where /proc does not show them. */
async function stoppedProxies(): Promise<readonly number[]> {
  // What looks at a host is large, and a proxy that answers has no use for it.
  const { hostSurveyFiles, turnoutProcesses } = await import("@turnout/explain");
  return (await turnoutProcesses(hostSurveyFiles)).filter(({ isStopped }) => isStopped).map(({ pid }) => pid);
}

/** As {@link fetchText}, of a proxy that shows that it runs while it takes its time. */
async function fetchOfLiving(
  place: Place,
  path: string,
  signal: AbortSignal,
  waitMs: number,
): Promise<{ readonly status: number; readonly body: string }> {
  if (waitMs <= ALIVE_MS) return await fetchText(place, path, signal, waitMs);
  const done = new AbortController();
  const either = AbortSignal.any([signal, done.signal]);
  try {
    const answer = fetchText(place, path, either, waitMs);
    const alive = fetchText(place, ALIVE_PATH, either, ALIVE_MS);
    return await Promise.race([answer, alive.then(() => answer)]);
  } finally {
    done.abort();
  }
}

/** @throws {LateError} */
async function fetchText(
  place: Place,
  path: string,
  signal: AbortSignal,
  waitMs: number,
): Promise<{ readonly status: number; readonly body: string }> {
  const late = AbortSignal.timeout(waitMs);
  const limit = AbortSignal.any([signal, late]);
  let isConnected = false;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(
      {
        ...("ip" in place ? { host: place.ip, port: place.port } : place),
        path,
        signal: limit,
        agent: false,
        headers: { accept: "application/json" },
      },
      resolve,
    )
      .on("socket", (socket) => socket.once("connect", () => void (isConnected = true)))
      .on("error", (error) => reject(late.aborted && !signal.aborted ? new LateError(waitMs, isConnected) : error));
  });
  let size = 0;
  response.on("data", (piece: Buffer) => {
    size += piece.length;
    if (size > ANSWER_BYTES_MAX) response.destroy(new Error("the answer is too long"));
  });
  return { status: response.statusCode ?? 0, body: await text(response) };
}
