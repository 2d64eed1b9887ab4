import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBackend, SCENARIOS } from "@turnout/conformance";
import table from "../src/index.ts";
import { createFakeHost } from "../src/testing.ts";

await test("the table backend conforms", async () => {
  const { findings } = await checkBackend(table, createFakeHost, SCENARIOS);
  assert.deepEqual(findings, []);
});
