import { expect, test } from "vitest";
import { gatesWithoutEffect, gateStates, isGateOn } from "./feature-gates.ts";
import { TURNOUT_GATES } from "./turnout-gates.ts";

test.each([
  ["nothing", {}, true],
  ["off", { TurnoutTakeOver: false }, false],
  ["all of its stage off", { AllBeta: false }, false],
  ["all of its stage off, but not this one", { AllBeta: false, TurnoutTakeOver: true }, true],
  ["all of another stage off", { AllAlpha: false }, true],
])("a gate is as is said: %s", (_name, said, isOn) => {
  expect(isGateOn("TurnoutTakeOver", said)).toBe(isOn);
  expect(gateStates(said)).toContainEqual({ name: "TurnoutTakeOver", stage: "BETA", enabled: isOn });
});

test("no gate has a name that kube-proxy could give one", () => {
  expect(TURNOUT_GATES.filter(({ name }) => !name.startsWith("Turnout"))).toEqual([]);
});

test("what of kube-proxy's has no effect is told from what has", () => {
  expect(gatesWithoutEffect({ TurnoutTakeOver: true, AllBeta: true })).toEqual(["AllBeta"]);
});
