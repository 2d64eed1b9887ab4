import { describe, expect, it } from "vitest";
import { abilitiesOf, ALL_CAPABILITIES } from "./capabilities.ts";
import { fitRow } from "./fit-row.ts";
import type { Endpoint, ServicePort } from "../model/rows.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import { rowsOf } from "../testing/view.ts";

const ALL = abilitiesOf({ capabilities: ALL_CAPABILITIES }).capabilities;
const spec = {
  type: "LoadBalancer",
  sessionAffinity: "ClientIP",
  loadBalancerSourceRanges: ["10.0.0.0/8"],
  ports: [{ name: "x", port: 80, protocol: "SCTP" }],
};
const ENDPOINTS = [
  rawSlice("cart", [
    { ip: "10.1.1.1", node: "node1" },
    { ip: "10.1.2.1", node: "node2" },
  ]),
];
const LOCAL = { type: "NodePort", externalTrafficPolicy: "Local", externalIPs: ["198.51.100.9"] };
const endpointAt = (port: number, index: number): Endpoint => ({
  ip: `10.1.1.${index + 1}`,
  port,
  nodeName: undefined,
  isLocal: false,
  ready: true,
  serving: true,
  terminating: false,
});
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

  it("no origins: what holds for anyone, and an issue where somebody is sent elsewhere", () => {
    const local = [...rowsOf([rawService("cart", LOCAL), ...ENDPOINTS]).values()][0] as ServicePort;
    const { row: fitted, issues } = fitRow(local, { ...ALL, origins: "nobody tells" });
    expect(fitted?.destinations.map(({ rules }) => rules)).toEqual(local.destinations.map(({ rules }) => rules.slice(-1)));
    expect(issues).toMatchObject([{ what: "pods and this host are treated as clients outside: nobody tells" }]);
    const cluster = [...rowsOf([rawService("cart"), ...ENDPOINTS]).values()][0] as ServicePort;
    expect(fitRow(cluster, { ...ALL, origins: "nobody tells" }).issues).toEqual([]);
  });

  it("one port for all endpoints: each pool keeps those of the port that most have, and the smaller of two", () => {
    const mixed = { ...row, name: { ...row.name, protocol: "TCP" } as const, endpoints: [8081, 8080, 8081, 8080, 8080].map(endpointAt) };
    const fit = (cluster: readonly number[], local: readonly number[]): ReturnType<typeof fitRow> =>
      fitRow({ ...mixed, cluster, local }, { ...ALL, endpointPorts: "one each" });
    expect(fit([0, 1, 2, 3, 4], [0]).row).toMatchObject({ cluster: [1, 3, 4], local: [0] });
    expect(fit([0, 1, 2, 3], [0, 2]).row).toMatchObject({ cluster: [1, 3], local: [0, 2] });
    expect(fit([0, 1], []).issues).toMatchObject([{ what: "endpoints left out, they have different ports: one each" }]);
    expect(fit([1, 3], [1])).toMatchObject({ row: { cluster: [1, 3] }, issues: [] });
  });

  it("a row that asks for none of it is left alone", () => {
    const plain = [...rowsOf([rawService("plain")]).values()][0] as ServicePort;
    expect(fitRow(plain, { ...ALL, sessionAffinity: "a", sourceRanges: "b", SCTP: "c", UDP: "d" })).toEqual({ row: plain, issues: [] });
  });
});
