import type { FlowFilter } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createFlowMatcher } from "./flow-matcher.ts";
import type { FlowView } from "./flow-matcher.ts";

function view(address: string, port: number, reply: string): FlowView {
  return { port, destination: () => address, replySource: () => reply };
}

const service: FlowFilter = { protocol: "UDP", address: "10.96.0.10", port: 53, keep: ["10.1.0.5:53", "10.1.0.6:53"] };
const nodePort: FlowFilter = { protocol: "UDP", address: "", port: 53, keep: ["10.1.0.5:53"] };
const only: FlowFilter = { ...service, keep: ["10.1.0.5:53"], only: ["10.1.0.5:53", "10.1.0.7:53"] };

describe("createFlowMatcher", () => {
  const rows: readonly (readonly [name: string, filters: readonly FlowFilter[], flow: FlowView, goes: boolean])[] = [
    ["no filter", [], view("10.96.0.10", 53, "10.1.0.9:53"), false],
    ["gone endpoint", [service], view("10.96.0.10", 53, "10.1.0.9:53"), true],
    ["kept endpoint", [service], view("10.96.0.10", 53, "10.1.0.6:53"), false],
    ["kept endpoint, other port", [service], view("10.96.0.10", 53, "10.1.0.6:54"), true],
    ["never translated", [service], view("10.96.0.10", 53, "10.96.0.10:53"), true],
    ["reply source unknown", [service], view("10.96.0.10", 53, ""), true],
    ["other address", [service], view("10.96.0.11", 53, "10.1.0.9:53"), false],
    ["other port", [service], view("10.96.0.10", 54, "10.1.0.9:53"), false],
    ["only: named", [only], view("10.96.0.10", 53, "10.1.0.7:53"), true],
    ["only: not named", [only], view("10.96.0.10", 53, "10.1.0.9:53"), false],
    ["only: named and kept", [only], view("10.96.0.10", 53, "10.1.0.5:53"), false],
    ["only: empty", [{ ...service, only: [] }], view("10.96.0.10", 53, "10.1.0.9:53"), false],
    ["node port, local address", [nodePort], view("192.0.2.1", 53, "10.1.0.9:53"), true],
    ["node port, kept", [nodePort], view("192.0.2.1", 53, "10.1.0.5:53"), false],
    ["node port, foreign address", [nodePort], view("198.51.100.1", 53, "10.1.0.9:53"), false],
    ["any one of two filters", [service, { ...service, keep: [] }], view("10.96.0.10", 53, "10.1.0.6:53"), true],
    ["node port and address on one port", [nodePort, service], view("10.96.0.10", 53, "10.1.0.9:53"), true],
    ["the other of the two", [nodePort, service], view("192.0.2.1", 53, "10.1.0.6:53"), true],
  ];
  it.each(rows)("%s", (_, filters, flow, goes) => {
    expect(createFlowMatcher(filters, ["192.0.2.1"]).matches(flow)).toBe(goes);
  });
});
