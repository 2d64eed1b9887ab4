// Follows a node-state server and prints what one node should do, again after each change: node print-state.ts TARGET NODE
import { watchFullState } from "@turnout/client";
import type { Destination, NodeState, ServicePort } from "@turnout/core";

const [target = "unix:///run/turnout/node.sock", nodeName = "node1"] = process.argv.slice(2);

/** Who answers there, when the last rule applies: everybody else than the rules before it name. */
function answerOf({ rules }: Destination, { endpoints, cluster, local }: ServicePort): string {
  const to = rules.at(-1)?.to ?? "drop";
  if (to === "reject" || to === "drop") return to;
  const pool = to === "cluster" ? cluster : local;
  return pool
    .map((index) => endpoints[index])
    .map((one) => `${one?.ip}:${one?.port}${one?.isLocal ? "*" : ""}`)
    .join(" ");
}

function linesOf({ rows }: NodeState): readonly string[] {
  return [...rows.values()].flatMap((row) =>
    row.destinations.map((destination) => {
      const where = `${destination.address === "" ? "node" : destination.address}:${destination.port}/${row.name.protocol}`;
      return `${where.padEnd(24)} ${row.key.padEnd(32)} → ${answerOf(destination, row)}`;
    }),
  );
}

for await (const { revision, families } of watchFullState(target, { nodeName })) {
  process.stdout.write(`# revision ${revision}\n`);
  for (const state of families.values())
    process.stdout.write(
      linesOf(state)
        .map((line) => `${line}\n`)
        .join(""),
    );
}
