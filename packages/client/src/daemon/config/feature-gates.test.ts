import { describe, expect, test } from "vitest";
import { featureGate, isGateOn, wrongGate } from "./feature-gates.ts";

describe("feature gates of kube-proxy", () => {
  test("are known by name, with their stage", () => {
    expect(featureGate("LoggingAlphaOptions")).toEqual({ name: "LoggingAlphaOptions", stage: "alpha", default: false, isLocked: false });
    expect(featureGate("APIServerTracing")).toMatchObject({ stage: "stable", default: true, isLocked: true });
    expect(featureGate("Nonesuch")).toBeUndefined();
    expect(featureGate("")).toBeUndefined();
  });

  test.each([
    ["nothing", {}, undefined],
    ["a known one", { ContextualLogging: false }, undefined],
    ["a locked one as it is", { APIServerTracing: true }, undefined],
    ["a locked one otherwise", { APIServerTracing: false }, "cannot set feature gate APIServerTracing to false, feature is locked to true"],
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
    ["locked", "APIServerTracing", { AllBeta: false }, true],
    ["unknown", "Nonesuch", { Nonesuch: true }, false],
  ])("on or off: %s", (_name, gate, said, isOn) => {
    expect(isGateOn(gate, said)).toBe(isOn);
  });
});
