import { expect, it } from "vitest";
import { describeObject } from "./describe.ts";

it("a program at a device is called by the device's name, as long as that is known", () => {
  const program = { kind: "device", key: "4-ingress", value: { program: "turnout_in", programs: "v1" } } as const;
  expect(describeObject(program, () => "eth0").what).toBe("the program at ingress of eth0");
});
