import { expect, it } from "vitest";
import { pauseAfter } from "./sctp-server.ts";

it.each([
  { name: "2 ms where a look costs next to nothing", lookMs: 0.005, pauseMs: 2 },
  { name: "longer where system calls are slow", lookMs: 0.05, pauseMs: 10 },
  { name: "never longer than 20 ms", lookMs: 30, pauseMs: 20 },
])("between two looks it pauses $name", ({ lookMs, pauseMs }) => {
  expect(pauseAfter(lookMs)).toBe(pauseMs);
});
