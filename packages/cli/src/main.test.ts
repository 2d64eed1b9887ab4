import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CART, TOY_BACKEND } from "./test-support/toy-environment.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-main-"));
  await writeFile(join(directory, "cart.yaml"), CART);
});

afterEach(() => rm(directory, { recursive: true }));

/** Run bash in which `turnout` is the command from its sources; touches nothing but `directory`. */
function inShell(script: string): Promise<{ readonly out: string; readonly err: string }> {
  const run = `"${process.execPath}" --conditions=@turnout/source --disable-warning=ExperimentalWarning "${MAIN}"`;
  const text = `turnout() { ${run} "$@"; }\nF="--source file:cart.yaml --node-name node1 --family 4"\n${script}`;
  return new Promise((resolve) => {
    execFile("bash", ["-c", text], { timeout: 60_000, cwd: directory }, (_error, out, err) => resolve({ out, err }));
  });
}

describe("standard streams", () => {
  test("a reader that goes away ends the command quietly", async () => {
    const { out, err } = await inShell('turnout print $F -o json | true; echo "$PIPESTATUS"');
    expect([out, err]).toEqual(["0\n", ""]);
  });

  test("a log nobody takes stops nothing", async () => {
    await writeFile(join(directory, "toy.mjs"), TOY_BACKEND);
    const dryRun = "turnout run --source file:cart.yaml --node-name node1 --once --dry-run --backend ./toy.mjs";
    const { out, err } = await inShell(`${dryRun} 2>/dev/full; echo "$?"; { ${dryRun}; echo "$?"; } 2> >(true)`);
    expect(err).toBe("");
    expect(out.match(/^0$/gm)).toHaveLength(2);
    expect(out.match(/^put service 10\.96\.0\.10:80$/gm)).toHaveLength(2);
  });

  test("output that can't be written is a failure, not a success with half an answer", async () => {
    const { out, err } = await inShell('turnout print $F >/dev/full; echo "$?"');
    expect(out).toBe("1\n");
    expect(err).toMatch(/^turnout: \[tool_failed\] what was asked for can't be written \(.*ENOSPC.*\n$/);
  });
});
