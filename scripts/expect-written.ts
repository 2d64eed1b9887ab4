import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ruleStatus, type BackendRules } from "./rule-status.ts";
import { columnOf, statusTable, type BackendStatus } from "./status-table.ts";

const HINT = "what is written of it isn't what the conformance kit says; run: npm run status:update";

/** What a report says of a backend. */
interface Report extends BackendRules {
  readonly abilities: { readonly capabilities: object; readonly variants: object };
}

/** Compare a kit's report with README's table of backends and docs/rule-status.json. @throws {Error} where they say otherwise of the backend. */
export function expectWritten({ backend, cells, abilities }: Report): void {
  const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
  const compare = (where: string, got: unknown, written: unknown): void =>
    assert.deepEqual(written, got, `${where}: backend ${backend}: ${HINT}`);
  const status = { backend, cells, ...(abilities as Pick<BackendStatus, "capabilities" | "variants">) };
  compare("README.md", columnOf(statusTable([status]), backend), columnOf(read("README.md"), backend));
  const rules = JSON.parse(read("docs/rule-status.json")) as ReturnType<typeof ruleStatus>;
  compare("docs/rule-status.json", ruleStatus([{ backend, cells }])[backend], rules[backend]);
}
