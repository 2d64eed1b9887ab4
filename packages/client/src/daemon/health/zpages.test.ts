import { expect, test } from "vitest";
import { flagzReply, foldersOf, negotiate, statuszReply } from "./zpages.ts";

const NO_QUERY = new URLSearchParams();
const asking = (accept: string) => ({ method: "GET", accept, host: "", remoteAddress: "", query: NO_QUERY });
const STATUS = {
  startedMs: Date.UTC(2026, 10, 3, 11, 37, 48),
  nowMs: Date.UTC(2026, 10, 3, 12, 38, 20),
  runtimeVersion: "v24.1.0",
  version: "0.1.0",
  emulationVersion: "1.36",
  paths: ["/metrics", "/metrics/slis", "/configz", "/debug/pprof/"],
};

test.each([
  ["", "text/plain"],
  ["*/*", "text/plain"],
  ["text/html, text/plain;q=0.5", "text/plain"],
  ["text/html", undefined],
  ["application/json", undefined],
  ["application/json;v=v1beta1;g=config.k8s.io;as=Flagz", undefined],
  ["application/json;v=v2;g=config.k8s.io;as=Statusz", undefined],
  ["application/json;v=v1beta1;g=apps;as=Statusz", undefined],
  ["application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "application/json"],
  ["application/yaml; v=v1alpha1; g=config.k8s.io; as=Statusz, text/plain", "application/yaml"],
])("Accept %j is answered with %s", (accept, type) => expect(negotiate(accept, "Statusz")?.type).toBe(type));

test("what is not accepted is a Status, as the real kube-proxy's", () => {
  const { status, body } = statuszReply(STATUS, asking("application/json"));
  expect([status, JSON.parse(body.toString())]).toEqual([
    406,
    {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: "only the following media types are accepted: application/json, application/yaml, text/plain",
      reason: "NotAcceptable",
      code: 406,
    },
  ]);
});

test("/statusz as text and as an object", () => {
  expect(statuszReply(STATUS, asking("")).body.toString().split("\n")).toEqual([
    "",
    "kube-proxy statusz",
    expect.stringMatching(/^Warning: /),
    "",
    "Started: Tue Nov  3 11:37:48 UTC 2026",
    "Up: 1 hr 00 min 32 sec",
    "Go version: v24.1.0",
    "Binary version: 0.1.0",
    "Emulation version: 1.36",
    "Paths: /configz /debug /metrics",
    "",
  ]);
  const object = statuszReply(STATUS, asking("application/json;v=v1beta1;g=config.k8s.io;as=Statusz"));
  expect(object.headers).toEqual({ "Content-Type": "application/json;g=config.k8s.io;v=v1beta1;as=Statusz" });
  expect(JSON.parse(object.body.toString())).toEqual({
    kind: "Statusz",
    apiVersion: "config.k8s.io/v1beta1",
    metadata: { name: "kube-proxy" },
    startTime: "2026-11-03T11:37:48Z",
    uptimeSeconds: 3632,
    goVersion: "v24.1.0",
    binaryVersion: "0.1.0",
    emulationVersion: "1.36",
    paths: ["/configz", "/debug", "/metrics"],
  });
});

test("/flagz is sorted; an old version has a warning", () => {
  const flags = { v: "0", "bind-address": "0.0.0.0" };
  expect(flagzReply(flags, asking("*/*")).body).toMatch(/\nbind-address=0.0.0.0\nv=0\n$/);
  const yaml = flagzReply(flags, asking("application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz"));
  expect(yaml.headers["Warning"]).toContain("flagz endpoint is deprecated");
  expect(yaml.body).toBe(
    'apiVersion: config.k8s.io/v1alpha1\nflags:\n  bind-address: 0.0.0.0\n  v: "0"\nkind: Flagz\nmetadata:\n  name: kube-proxy\n',
  );
});

test("paths are told by their first folder", () => expect(foldersOf(["/b/c", "/b", "/", "/a/"])).toEqual(["/a", "/b"]));
