import { expect, it } from "vitest";
import { createReferenceHost } from "./reference-host.ts";
import type { ReferenceStep } from "./reference-objects.ts";

const NODE: ReferenceStep = {
  do: "add",
  object: { kind: "node", key: "node", value: { nodePortAddresses: ["172.18.0.1"], serviceCIDRs: ["10.96.0.0/16"] } },
};
const VALUE = {
  row: "kit/web:udp/UDP",
  rules: [{ from: "anyone", to: "cluster", masquerade: false }],
  sources: [],
  cluster: ["10.1.1.1:8080", "203.0.113.1:8080"],
  local: [],
  affinitySeconds: 0,
} as const;
const WEB: ReferenceStep = { do: "add", object: { kind: "destination", key: "10.96.0.1 80/UDP", value: VALUE } };

/** All else that the reference host does is seen when the kit is run on it: breakages.test.ts. */
it("takes a whole letter or nothing, and says what is wrong with it", async () => {
  const host = createReferenceHost();
  const write = async (...steps: readonly ReferenceStep[]): Promise<string> => {
    const input = steps.map((step) => JSON.stringify(step)).join("\n");
    const { code, stderr } = await host.world.exec.run("reference", ["write", "IPv4"], { input });
    return code === 0 ? "" : stderr;
  };
  expect(await write(NODE, WEB)).toBe("");
  const { object } = WEB;
  const before = host.own();
  const gone: ReferenceStep = { do: "remove", object: { ...object, key: "elsewhere" } };
  const withValue = (value: object): ReferenceStep => ({ do: "replace", object: { ...object, value: { ...VALUE, ...value } } });
  const complaints: readonly (readonly [string, ...(readonly ReferenceStep[])])[] = [
    ["destination 10.96.0.1 80/UDP is there", { do: "remove", object: NODE.object }, WEB],
    ["destination elsewhere is not there", { do: "remove", object: NODE.object }, gone],
    ["destination elsewhere is not there", { ...gone, do: "replace" }],
    ["destination 10.96.0.1 80/UDP is touched twice", { do: "remove", object }, WEB],
    ["destination 10.96.0.1 80/UDP has a rule with an empty pool", withValue({ cluster: [] })],
    ["destination 10.96.0.1 80/UDP does not say what becomes of anyone", withValue({ rules: [] })],
  ];
  for (const [complaint, ...steps] of complaints) expect(await write(...steps)).toBe(complaint);
  expect(host.own()).toEqual(before);
});
