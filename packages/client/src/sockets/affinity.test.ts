import { beforeEach, describe, expect, it } from "vitest";
import { AffinityTable } from "./affinity.ts";

const [A, B, C] = ["10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80"] as const;
const ROW = "shop/cart:http/TCP";
const ME = "203.0.113.1";
let nowMs = 0;
let table: AffinityTable;

beforeEach(() => {
  nowMs = 0;
  table = new AffinityTable(() => nowMs, 3);
});

describe("a client's endpoint", () => {
  it("is remembered for so long after its latest connection", () => {
    table.note(ROW, ME, A, 10);
    nowMs = 9_000;
    table.note(ROW, ME, A, 10);
    nowMs = 18_999;
    expect(table.find(ROW, ME)).toBe(A);
    nowMs = 19_000;
    expect(table.find(ROW, ME)).toBeUndefined();
  });

  it("is of one row and one client", () => {
    table.note(ROW, ME, A, 10);
    expect([table.find("shop/cart:admin/TCP", ME), table.find(ROW, "203.0.113.2")]).toEqual([undefined, undefined]);
  });

  it("holds for those that come while a connection is being made, and not when it isn't made", () => {
    table.propose(ROW, ME, A, 10);
    expect(table.find(ROW, ME)).toBe(A);
    table.propose(ROW, ME, A, 10);
    table.withdraw(ROW, ME, A);
    expect(table.find(ROW, ME)).toBe(A);
    table.withdraw(ROW, ME, A);
    expect([table.find(ROW, ME), table.size]).toEqual([undefined, 0]);
  });

  it("is what it was before when another is not made", () => {
    table.note(ROW, ME, A, 10);
    table.propose(ROW, ME, B, 10);
    table.propose(ROW, ME, C, 10);
    expect(table.find(ROW, ME)).toBe(C);
    table.withdraw(ROW, ME, B);
    expect(table.find(ROW, ME)).toBe(C);
    table.withdraw(ROW, ME, C);
    expect(table.find(ROW, ME)).toBe(A);
  });

  it("stays when a connection was made, whatever becomes of others to it", () => {
    table.propose(ROW, ME, A, 10);
    table.note(ROW, ME, A, 10);
    table.propose(ROW, ME, A, 10);
    table.withdraw(ROW, ME, A);
    expect(table.find(ROW, ME)).toBe(A);
  });

  it("is let go of with the endpoint", () => {
    table.note(ROW, ME, A, 10);
    table.note("another", ME, A, 10);
    table.retain(ROW, new Set([B]));
    expect([table.find(ROW, ME), table.find("another", ME)]).toEqual([undefined, A]);
  });

  it("is not forgotten for clients of another namespace, of which there are more", () => {
    table.note(ROW, ME, A, 10);
    for (let client = 0; client < 100; client++) table.note("flood/web:http/TCP", `198.51.100.${client}`, B, 10);
    expect([table.find(ROW, ME), table.size]).toEqual([A, 3]);
  });

  it("is forgotten for the sake of others when there are too many, the one that was silent longest first", () => {
    for (const client of ["1", "2", "3", "1", "4"]) table.note(ROW, client, A, 10);
    expect(["1", "2", "3", "4"].map((client) => table.find(ROW, client))).toEqual([A, undefined, A, A]);
  });

  it("is swept up when its time is over", () => {
    table.note(ROW, "1", A, 1);
    table.note(ROW, "2", A, 2);
    nowMs = 1_500;
    table.sweep();
    expect(table.size).toBe(1);
  });
});
