import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { needs } from "./needs.ts";

const PROGRAM = fileURLToPath(new URL("status.ts", import.meta.url));
/** All scenarios on all backends, one after the other. */
const TIMEOUT_MS = 900_000;

it(
  "README's table of backends, and the rules that each passed, are what the conformance kit says",
  { ...needs("bpf"), timeout: TIMEOUT_MS },
  () => {
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(status).toBe(0);
  },
);
