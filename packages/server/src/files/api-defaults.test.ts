import { describe, expect, it } from "vitest";
import { withApiDefaults } from "./api-defaults.ts";

const slice = (ports: unknown): { metadata: { name: string }; ports: unknown } => ({ metadata: { name: "s" }, ports });

describe("withApiDefaults", () => {
  it.each<[string, unknown, unknown]>([
    [
      "an unnamed slice port is the port named nothing",
      [{ port: 80 }, { name: null, port: 81 }],
      [
        { port: 80, name: "" },
        { name: "", port: 81 },
      ],
    ],
    ["a named one keeps its name", [{ name: "http", port: 80 }], [{ name: "http", port: 80 }]],
    ["no ports stay no ports", null, null],
    ["nonsense is left to the core", ["x", 3], ["x", 3]],
  ])("%s", (_name, given, expected) => {
    expect(withApiDefaults("EndpointSlice", slice(given))).toEqual(slice(expected));
  });

  it("leaves other kinds alone", () => {
    const service = slice([{ port: 80 }]);
    expect(withApiDefaults("Service", service)).toBe(service);
  });
});
