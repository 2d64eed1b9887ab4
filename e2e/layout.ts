import { createHash } from "node:crypto";
import { isFullRun } from "@turnout/house/some-of";

/** How a node's proxy is made of processes: `turnout run`, or `turnout serve` and a backend's own program on a unix socket. */
export type Layout = "one process" | "two processes";

const LAYOUTS: readonly Layout[] = ["one process", "two processes"];

/** `one`, `two` or `both` chooses for all; unset chooses by name, or both with `TURNOUT_TESTS=full`. */
const VARIABLE = "TURNOUT_E2E_LAYOUT";

/**
 * The layouts to play scenarios in: both, or one of them, always the same for the same name.
 *
 * @throws {Error} when the environment asks for a layout that there is not.
 */
export function layoutsOf(name: string, env: Readonly<Record<string, string | undefined>> = process.env): readonly Layout[] {
  const wanted = env[VARIABLE] ?? (isFullRun(env) ? "both" : "");
  if (wanted === "both") return LAYOUTS;
  const chosen = LAYOUTS.find((layout) => layout.startsWith(`${wanted} `));
  if (chosen !== undefined) return [chosen];
  if (wanted !== "") throw new Error(`${VARIABLE} is one, two or both, and not ${wanted}`);
  return createHash("sha256").update(name).digest().readUInt32BE() % 2 === 0 ? ["one process"] : ["two processes"];
}

/** The layout of what has no name: what the environment says, or else one process. */
export function defaultLayout(env: Readonly<Record<string, string | undefined>> = process.env): Layout {
  return env[VARIABLE] === "two" ? "two processes" : "one process";
}
