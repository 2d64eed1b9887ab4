import { readFileSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { closedHealthPortEvent, externalChangeEvent, issueEvents, ownServerEvent, PROXY_EVENTS, type ProxyEvent } from "./proxy-events.ts";

function bindError(code: string, object: string): ProxyError {
  return new ProxyError("already_exists", "can't listen", { object, cause: Object.assign(new Error("listen"), { code }) });
}

// The notes are kube-proxy 1.36.3's, from its own runs against an API server.
describe("a server that can't listen is told in kube-proxy's words", () => {
  it.each<[name: string, event: ProxyEvent, reason: string, note: string]>([
    [
      "healthz",
      ownServerEvent("healthz", bindError("EADDRINUSE", "127.0.0.1:10256")),
      "FailedToStartProxierHealthcheck",
      "healthz server failed: failed to start proxy healthz on 127.0.0.1:10256: listen tcp 127.0.0.1:10256: bind: address already in use",
    ],
    [
      "metrics",
      ownServerEvent("metrics", bindError("EACCES", "[::1]:80")),
      "FailedToStartMetricServer",
      "listen tcp [::1]:80: bind: permission denied",
    ],
    [
      "a health check node port",
      closedHealthPortEvent("node1", {
        service: "shop/cart",
        port: 30_100,
        family: "IPv6",
        error: bindError("EADDRNOTAVAIL", "[fd00::1]:30100"),
      }),
      "FailedToStartServiceHealthcheck",
      'node node1 failed to start healthcheck "shop/cart" on port 30100: listen tcp6 [fd00::1]:30100: bind: cannot assign requested address',
    ],
    [
      "one for a reason that is not the kernel's",
      closedHealthPortEvent("node1", {
        service: "a/b",
        port: 1,
        family: "IPv4",
        error: new ProxyError("not_found", "no address is chosen"),
      }),
      "FailedToStartServiceHealthcheck",
      'node node1 failed to start healthcheck "a/b" on port 1: no address is chosen',
    ],
  ])("%s", (_name, event, reason, note) => {
    expect(event).toMatchObject({ reason, note });
  });
});

it("docs/operations.md names the events that there are, with their types and objects", () => {
  const page = readFileSync(new URL("../../../../../docs/operations.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("| reason | type | object |");
  const rows = [...(table.split("\n\n")[0] ?? "").matchAll(/^\| `(\w+)` \| (\w+) \| (\w+) \|/gm)].map(([, ...cells]) => cells);
  expect(rows).toEqual(Object.entries(PROXY_EVENTS).map(([reason, { type, object }]) => [reason, type, object]));
});

describe("R-55 a report is an event of the cluster at the Service that it concerns", () => {
  const said = { what: "bad range, it is left out: 1.2.3.4/33", hint: "write a CIDR" };

  it.each<[object: string, service: string | undefined, regarding: string, note: string, matter: string]>([
    [
      "Service shop/cart",
      undefined,
      "shop/cart",
      "bad range, it is left out: 1.2.3.4/33; write a CIDR",
      "Service shop/cart bad range, it is left out",
    ],
    [
      "Service port shop/cart:http/TCP",
      undefined,
      "shop/cart",
      "Service port shop/cart:http/TCP: bad range, it is left out: 1.2.3.4/33; write a CIDR",
      "Service port shop/cart:http/TCP bad range, it is left out",
    ],
    [
      "EndpointSlice shop/cart-1",
      "shop/cart",
      "shop/cart",
      "EndpointSlice shop/cart-1: bad range, it is left out: 1.2.3.4/33; write a CIDR",
      "EndpointSlice shop/cart-1 bad range, it is left out",
    ],
  ])("%s", (object, service, regarding, note, matter) => {
    const [namespace = "", name = ""] = regarding.split("/");
    expect(issueEvents({ object, ...said, ...(service === undefined ? {} : { service }) })).toEqual([
      { reason: "ServiceProblem", type: "Warning", action: "ReadService", note, matter, service: { namespace, name }, isOfCluster: true },
    ]);
  });

  it("but none where it concerns no Service, and no second one where it asks for one itself", () => {
    for (const object of ["Node node1", "EndpointSlice shop/lost", "services.yaml:7"]) expect(issueEvents({ object, ...said })).toEqual([]);
    const events = [{ reason: "AddressContested", service: "shop/cart", note: "taken" }] as const;
    expect(issueEvents({ object: "Service port shop/cart:http/TCP", ...said, events })).toMatchObject([{ reason: "AddressContested" }]);
    expect(issueEvents({ object: "Service port shop/other:http/TCP", ...said, events }).map(({ reason }) => reason)).toEqual([
      "AddressContested",
      "ServiceProblem",
    ]);
  });
});

describe("rules that others changed", () => {
  it("are told with who it was, and what was done to what", () => {
    const some = ["removed service TCP 10.96.0.1:80 (shop/cart:http/TCP)"];
    expect(externalChangeEvent("IPv4", { who: "nft (pid 7)", objects: 3, some }).note).toBe(
      "Turnout's rules for IPv4 were changed and are repaired (3 objects): nft (pid 7); removed service TCP 10.96.0.1:80 (shop/cart:http/TCP), …",
    );
    expect(externalChangeEvent("IPv6", { who: "nft (pid 7)", objects: 1, some: [] })).toMatchObject({
      note: "Turnout's rules for IPv6 were changed and are repaired (1 object): nft (pid 7)",
      matter: "IPv6",
    });
  });
});
