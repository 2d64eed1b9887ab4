import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { ruleStatus, type BackendRules } from "./rule-status.ts";
import { tablesOf, withWritten } from "./written-part.ts";

/** What the kit's report says of one backend, as far as the table shows it. */
export interface BackendStatus extends BackendRules {
  readonly capabilities: Readonly<Record<string, true | string>>;
  readonly variants: Readonly<Record<string, string | boolean>>;
}

const MARKS = ["<!-- written by npm run status:update -->", "<!-- end of what is written -->"] as const;
const FAMILIES = ["IPv4", "IPv6"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"];

/** The permitted differences between proxiers, in words: `status-variants.yaml`. */
const VARIANTS = parse(readFileSync(new URL("status-variants.yaml", import.meta.url), "utf8")) as Readonly<
  Record<string, readonly [title: string, words: Readonly<Record<string, string>>]>
>;

/** Write the table of backends: one column each, what it passed, what it can do and which permitted behaviours it has. Pure. */
export function statusTable(backends: readonly BackendStatus[]): string {
  const row = (name: string, cell: (one: BackendStatus) => string): string => `| ${name} | ${backends.map(cell).join(" | ")} |`;
  return [
    row("backend", ({ backend }) => `\`${backend}\``),
    `|---|${backends.map(() => "---|").join("")}`,
    row("[rules](docs/rules.md) passed", rulesText),
    row("families", ({ capabilities }) => FAMILIES.filter((name) => capabilities[name] === true).join(", ")),
    row("protocols", ({ capabilities }) => PROTOCOLS.filter((name) => capabilities[name] === true).join(", ")),
    row("can't do", missingText),
    ...Object.entries(VARIANTS).map(([name, [title, words]]) =>
      row(title, ({ variants }) => words[String(variants[name])] ?? String(variants[name])),
    ),
  ].join("\n");
}

function rulesText(of: BackendStatus): string {
  const rules = Object.values(ruleStatus([of])[of.backend] ?? {});
  const [passed, failed] = ["passed", "failed"].map((word) => rules.filter((one) => one === word).length) as [number, number];
  const leftOut = rules.length - passed - failed;
  return `${passed} of ${passed + failed}${leftOut === 0 ? "" : `, ${leftOut} left out`}`;
}

function missingText({ capabilities }: BackendStatus): string {
  const missing = Object.entries(capabilities).flatMap(([name, can]) => (can === true ? [] : [`${name}: ${can}`]));
  return missing.length === 0 ? "nothing" : missing.join("; ");
}

/** Put a table where a page has its place for it. Pure. @throws {Error} when the page has no such place. */
export function withTable(page: string, table: string): string {
  return withWritten(page, MARKS, table);
}

/** The cells of a backend in the table that a page has, or that {@link statusTable} wrote; empty: it has no column. Pure. */
export function columnOf(page: string, backend: string): readonly string[] {
  const table = tablesOf(page).find(({ columns }) => columns[0] === "backend");
  const at = table?.columns.indexOf(`\`${backend}\``) ?? -1;
  return at < 0 ? [] : (table?.rows ?? []).map((cells) => `${cells[0]}: ${cells[at]}`);
}
