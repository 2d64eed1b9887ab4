import { parseIP } from "@turnout/core";
import type { Extension, Given, MatchBody } from "./extension.ts";
import { not, unsigned32 } from "./extension.ts";
import { usage } from "./refusal.ts";
import type { Walk } from "./walk.ts";

const MS_PER_SECOND = 1_000;
const ACTIONS = ["set", "rcheck", "update", "remove"] as const;
type Action = (typeof ACTIONS)[number];

/** Clients seen recently: session affinity. The fake has lists by source address, whole; no hit counts. */
export const recentMatch: Extension<MatchBody> = {
  name: "recent",
  options: [
    ...ACTIONS.map((name, index) => ({ name, isFlag: true, isInvertible: true, excludes: ACTIONS.slice(index + 1) })),
    { name: "seconds" },
    { name: "reap", isFlag: true, needs: ["seconds"] },
    { name: "name" },
    { name: "mask" },
    { name: "rsource", isFlag: true },
  ],
  finish(given, { family }): MatchBody {
    const action = ACTIONS.find((name) => given.has(name));
    if (action === undefined) throw usage("recent: you must specify one of `--set', `--rcheck' `--update' or `--remove'");
    const name = given.get("name")?.value ?? "DEFAULT";
    const secondsText = given.get("seconds")?.value;
    const seconds = secondsText === undefined ? 0 : unsigned32(secondsText);
    if (seconds === undefined || (secondsText !== undefined && seconds === 0))
      throw usage('recent: bad value for option "--seconds", or out of range (1-4294967295).\n');
    const option = given.get(action) as Given;
    const mask = family === "IPv4" ? "255.255.255.255" : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    const wanted = given.get("mask")?.value ?? mask;
    if (parseIP(wanted)?.family !== family) throw usage("getaddrinfo: Name or service not known");
    if (wanted !== mask) throw usage(`recent: the fake has whole addresses only, mask ${mask}`);
    const times = `${seconds === 0 ? "" : ` --seconds ${seconds}`}${given.has("reap") ? " --reap" : ""}`;
    return {
      name: "recent",
      text: `-m recent ${not(option)}--${action}${times} --name ${name} --mask ${mask} --rsource`,
      recent: name,
      test: (walk) => matches(action, { name, seconds }, walk) !== option.isInverted,
    };
  },
};

/** @source Linux net/netfilter/xt_recent.c recent_mt */
function matches(action: Action, { name, seconds }: { readonly name: string; readonly seconds: number }, walk: Walk): boolean {
  const { recents, nowMs } = walk.host;
  const seenAtMs = recents.seenAt(name, walk.source);
  if (action === "set") {
    recents.put(name, walk.source, nowMs);
    return true;
  }
  if (seenAtMs === undefined) return false;
  if (action === "remove") {
    recents.remove(name, walk.source);
    return true;
  }
  const isFresh = seconds === 0 || nowMs - seenAtMs <= seconds * MS_PER_SECOND;
  if (isFresh && action === "update") recents.put(name, walk.source, nowMs);
  return isFresh;
}
