import { expect, test } from "vitest";
import { gatesWithoutEffect, gateStates, isGateOn } from "./feature-gates.ts";
import { KUBE_PROXY_GATES } from "../gen/kube-proxy-gates.ts";
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
  expect(gatesWithoutEffect({ TurnoutTakeOver: true, ComponentFlagz: false, ContextualLogging: false })).toEqual(["ContextualLogging"]);
  expect(gatesWithoutEffect({ AllowServiceExternalIPs: false, KubeProxyIPVS: true, KubeProxyNFTablesLocalhostNodePorts: true })).toEqual(
    [],
  );
  expect(gatesWithoutEffect({ NFTablesNetlink: false, KMSv2: true, NFTablesProxyMode: false, WinDSR: true })).toEqual([
    "NFTablesNetlink",
    "KMSv2: kube-proxy 1.31 was the last with it",
    "NFTablesProxyMode: locked to true",
    "WinDSR",
  ]);
});

test("AllAlpha and AllBeta have an effect, because of the gates that they set", () => {
  expect(gatesWithoutEffect({ AllBeta: false, AllAlpha: true })).toEqual([]);
});

test("every gate is told as it stands, kube-proxy's too", () => {
  const said = { AllAlpha: true, ContextualLogging: false, TurnoutTakeOver: false };
  const states = gateStates(said);
  expect(states.length).toBe(KUBE_PROXY_GATES.trim().split("\n").length + TURNOUT_GATES.length);
  expect(states).toEqual(
    expect.arrayContaining([
      { name: "AllAlpha", stage: "ALPHA", enabled: true },
      { name: "AllBeta", stage: "BETA", enabled: false },
      { name: "LoggingAlphaOptions", stage: "ALPHA", enabled: true },
      { name: "ContextualLogging", stage: "BETA", enabled: false },
      { name: "NFTablesProxyMode", stage: "", enabled: true },
      { name: "TurnoutTakeOver", stage: "BETA", enabled: false },
    ]),
  );
});
