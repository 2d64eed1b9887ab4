/** The process that acts inside one namespace: questions on stdin, answers on stdout, gone when stdin ends. */
import { ProxyError } from "@turnout/core/backend";
import { attempt, getOnce } from "./attempts.ts";
import { hold } from "./hold.ts";
import type { Held } from "./hold.ts";
import { serveLines } from "./lines.ts";
import { burst, startLoad } from "./load.ts";
import type { Load } from "./load.ts";
import type { AgentCalls } from "./protocol.ts";
import { sendStray } from "../raw/stray-segment.ts";
import { createServers } from "./servers.ts";

const servers = createServers();
const loads = createHandles<Load>("load");
const held = createHandles<Held>("held connection");

const calls: AgentCalls = {
  serve: (request) => servers.serve(request),
  stop: (request) => servers.stop(request),
  attempt: (request) => attempt(request),
  burst,
  startLoad: async (request) => loads.add(startLoad(request)),
  peekLoad: async (handle) => loads.get(handle).peek(),
  stopLoad: (handle) => loads.remove(handle).stop(),
  hold: async (request) => held.add(await hold(request)),
  holdStatus: async (handle) => held.get(handle).status(),
  release: async (handle) => held.remove(handle).release(),
  get: (request) => getOnce(request),
  sendStray,
};

/** Things that outlive a question, by number. */
interface Handles<T> {
  add(thing: T): number;
  get(handle: number): T;
  remove(handle: number): T;
}

function createHandles<T>(what: string): Handles<T> {
  const things = new Map<number, T>();
  let last = 0;
  const get = (handle: number): T => {
    const thing = things.get(handle);
    if (thing === undefined) throw new ProxyError("not_found", what, { object: String(handle) });
    return thing;
  };
  return {
    add: (thing) => {
      last += 1;
      things.set(last, thing);
      return last;
    },
    get,
    remove: (handle) => {
      const thing = get(handle);
      things.delete(handle);
      return thing;
    },
  };
}

await serveLines(process.stdin, process.stdout, { ...calls });
process.exit(0);
