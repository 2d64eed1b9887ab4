import { expect, it } from "vitest";
import { freePorts } from "./stage.ts";

it("ports that are free are given once, however many are asked for", async () => {
  // One by one the kernel gives the same one twice among so many, almost surely.
  const ports = await freePorts(500);
  expect(new Set(ports).size).toBe(500);
  expect(ports).not.toContain(0);
});
