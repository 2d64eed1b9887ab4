import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { npmSettingsOf, runIsolated } from "./npm.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-npm-"));
  await writeFile(join(folder, "npm"), '#!/bin/sh\nenv | grep -i "^npm_" | sort\n');
  await chmod(join(folder, "npm"), 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("npm gets the configuration and the provenance that a workflow asked for", async () => {
  const settings = npmSettingsOf({ NPM_CONFIG_USERCONFIG: "/runner/.npmrc", NPM_CONFIG_PROVENANCE: "true" });
  expect(await runIsolated({ ...settings, nodeFolder: folder }, folder, ["npm"])).toBe(
    "npm_config_provenance=true\nnpm_config_userconfig=/runner/.npmrc\n",
  );
});

it("npm gets nothing where nothing was asked for, whatever npm told this process", async () => {
  process.env["npm_config_test_of_turnout"] = "1";
  try {
    expect(await runIsolated({ ...npmSettingsOf({}), nodeFolder: folder }, folder, ["sh", "-c", "npm || true"])).toBe("");
  } finally {
    delete process.env["npm_config_test_of_turnout"];
  }
});
