import { describe, expect, test } from "vitest";
import { isGateOn, servesExternalIPs, wrongGate } from "./feature-gates.ts";

describe("feature gates of kube-proxy", () => {
  test.each([
    ["nothing", {}, undefined],
    ["a known one", { ContextualLogging: false }, undefined],
    ["a locked one as it is", { NFTablesProxyMode: true }, undefined],
    ["a locked one otherwise", { NFTablesProxyMode: false }, undefined],
    ["one that only older kube-proxies have", { APIServerTracing: false, KMSv2: true }, undefined],
    ["one that kube-proxy 1.37 brought", { NFTablesNetlink: false, KubeProxyNFTablesLocalhostNodePorts: true }, undefined],
    ["an unknown one", { AllAlpha: true, Nonesuch: true }, "unrecognized feature gate: Nonesuch"],
  ])("%s", (_name, said, wrong) => {
    expect(wrongGate(said)).toBe(wrong);
  });

  test.each([
    ["by default", "LoggingAlphaOptions", {}, false],
    ["as said", "LoggingAlphaOptions", { LoggingAlphaOptions: true }, true],
    ["with all of its stage", "LoggingAlphaOptions", { AllAlpha: true }, true],
    ["as said, whatever is said of its stage", "LoggingAlphaOptions", { AllAlpha: true, LoggingAlphaOptions: false }, false],
    ["not with all of another stage", "LoggingAlphaOptions", { AllBeta: true }, false],
    ["off with all of its stage", "LoggingBetaOptions", { AllBeta: false }, false],
    ["locked", "NFTablesProxyMode", { NFTablesProxyMode: false }, true],
    ["unknown", "Nonesuch", { Nonesuch: true }, false],
  ])("on or off: %s", (_name, gate, said, isOn) => {
    expect(isGateOn(gate, said)).toBe(isOn);
  });
});

test.each<readonly [said: Readonly<Record<string, boolean>>, version: string | undefined, isServed: boolean | undefined]>([
  [{}, undefined, undefined],
  [{}, "no version", undefined],
  [{}, "v1.29.6-gke.100", true],
  [{}, "v1.39.2", true],
  [{}, "v1.40.0-alpha.1", false],
  [{}, "1.43", false],
  [{ AllBeta: false, AllAlpha: false }, "v1.37.2", true],
  [{ AllowServiceExternalIPs: true }, "v1.40.0", true],
  [{ AllowServiceExternalIPs: false }, undefined, false],
])("externalIPs are served by gates %j in a cluster of %s: %s", (said, version, isServed) => {
  expect(servesExternalIPs(said, version)).toBe(isServed);
});
