import { ruleStatus, type BackendRules } from "./rule-status.ts";
import { withWritten } from "./written-part.ts";

/** What the kit's report says of one backend, as far as the table shows it. */
export interface BackendStatus extends BackendRules {
  readonly capabilities: Readonly<Record<string, true | string>>;
  readonly variants: Readonly<Record<string, string | boolean>>;
}

const MARKS = ["<!-- written by npm run status:update -->", "<!-- end of what is written -->"] as const;
const FAMILIES = ["IPv4", "IPv6"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"];

/** The permitted differences between proxiers, in words; a choice without words of its own is shown as it is. */
const VARIANTS: Readonly<Record<string, readonly [string, Readonly<Record<string, string>>]>> = {
  undefinedClusterIPPort: ["a port nobody defined on a cluster IP", { reject: "is refused", pass: "is left alone" }],
  undefinedExternalPort: ["a port nobody defined on an external or load-balancer IP", { reject: "is refused", pass: "is left alone" }],
  unallocatedClusterIP: ["an address of the service range nobody has", { drop: "is dropped", pass: "is left alone" }],
  nodePortRejectScope: [
    "a node port without endpoints is refused",
    { nodePortAddresses: "on node-port addresses", anyLocalAddress: "on every own address" },
  ],
  rejectFromHost: ["refusals concern the host's own packets too", { true: "yes", false: "no" }],
  blockedWithoutEndpoints: ["a source outside the ranges, no endpoints", { drop: "is dropped", reject: "is refused" }],
  nodePortsOnLoopback: ["node ports on 127.0.0.1", { IPv4: "answer", never: "don't answer", TCP: "TCP answers if named" }],
  affinityScope: ["one affinity entry is for", { row: "one service port", address: "one address of a service port" }],
  affinityBy: ["affinity is made of", { memory: "memory with a timeout", address: "the client's address, without a timeout" }],
  nodePortScope: ["node ports answer on", { settings: "the addresses chosen", all: "all own addresses" }],
  rowChanges: ["servers and masquerading that both change", { atOnce: "change at once", inParts: "change one after the other" }],
  localClients: [
    "clients on the node itself are served at",
    { packets: "their packets", sockets: "their sockets, with the address they have" },
  ],
};

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
  const from = page.indexOf("| backend |");
  const rows = page.slice(from, page.indexOf("\n\n", from) < 0 ? undefined : page.indexOf("\n\n", from)).split("\n");
  const table = rows.filter((line) => line.startsWith("|")).map((line) => line.split(/ ?\| ?/));
  const at = table[0]?.indexOf(`\`${backend}\``) ?? -1;
  return at < 0 ? [] : table.slice(2).map((cells) => `${cells[1]}: ${cells[at]}`);
}
