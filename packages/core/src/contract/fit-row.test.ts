import { describe, expect, it } from "vitest";
import { ALL_CAPABILITIES as ALL } from "./capabilities.ts";
import { fitRow } from "./fit-row.ts";
import type { ServicePort } from "../model/rows.ts";
import { rawService } from "../testing/objects.ts";
import { rowsOf } from "../testing/view.ts";

const spec = {
  type: "LoadBalancer",
  sessionAffinity: "ClientIP",
  loadBalancerSourceRanges: ["10.0.0.0/8"],
  ports: [{ name: "x", port: 80, protocol: "SCTP" }],
};
const row = [...rowsOf([rawService("cart", spec, { ingress: [{ ip: "203.0.113.9" }] })]).values()][0] as ServicePort;

describe("R-56 a backend that can't do something fails closed, and says so", () => {
  it("one that can do everything gets the row as it is", () => {
    expect(fitRow(row, ALL)).toEqual({ row, issues: [] });
    expect(fitRow(row, ALL).row).toBe(row);
  });

  it("no such protocol: no row", () => {
    const { row: fitted, issues } = fitRow(row, { ...ALL, SCTP: "kernel without sctp" });
    expect(fitted).toBeUndefined();
    expect(issues).toMatchObject([{ object: "Service port shop/cart:x/SCTP", what: "left out, no SCTP: kernel without sctp" }]);
  });

  it("no source ranges: the restricted address is left out, not opened", () => {
    const { row: fitted, issues } = fitRow(row, { ...ALL, sourceRanges: "not yet" });
    expect(fitted?.destinations.map(({ kind }) => kind)).toEqual(["clusterIP"]);
    expect(issues).toMatchObject([{ what: "left out, no source ranges: 203.0.113.9: not yet" }]);
  });

  it("no affinity: programmed without", () => {
    const { row: fitted, issues } = fitRow(row, { ...ALL, sessionAffinity: "no timeouts" });
    expect(fitted).toEqual({ ...row, affinitySeconds: undefined });
    expect(issues).toMatchObject([{ what: "programmed without session affinity: no timeouts" }]);
  });

  it("neither: both are reported", () => {
    const { row: fitted, issues } = fitRow(row, { ...ALL, sessionAffinity: "a", sourceRanges: "b" });
    expect([fitted?.affinitySeconds, fitted?.destinations.length, issues.length]).toEqual([undefined, 1, 2]);
  });

  it("a row that asks for none of it is left alone", () => {
    const plain = [...rowsOf([rawService("plain")]).values()][0] as ServicePort;
    expect(fitRow(plain, { ...ALL, sessionAffinity: "a", sourceRanges: "b", SCTP: "c", UDP: "d" })).toEqual({ row: plain, issues: [] });
  });
});
