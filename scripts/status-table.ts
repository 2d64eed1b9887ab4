import { withWritten } from "./written-part.ts";

/** What `turnout conformance -o json` says of one backend, as far as the table shows it. */
export interface BackendStatus {
  readonly backend: string;
  readonly capabilities: Readonly<Record<string, true | string>>;
  readonly variants: Readonly<Record<string, string | boolean>>;
  readonly rules: { readonly passed: number; readonly failed: number; readonly leftOut: number };
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

function rulesText({ rules }: BackendStatus): string {
  const asked = `${rules.passed} of ${rules.passed + rules.failed}`;
  return rules.leftOut === 0 ? asked : `${asked}, ${rules.leftOut} left out`;
}

function missingText({ capabilities }: BackendStatus): string {
  const missing = Object.entries(capabilities).flatMap(([name, can]) => (can === true ? [] : [`${name}: ${can}`]));
  return missing.length === 0 ? "nothing" : missing.join("; ");
}

/** Put a table where a page has its place for it. Pure. @throws {Error} when the page has no such place. */
export function withTable(page: string, table: string): string {
  return withWritten(page, MARKS, table);
}
