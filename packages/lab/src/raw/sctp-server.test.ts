import { expect, it } from "vitest";
import { pauseAfter } from "./sctp-server.ts";

it.each([
  { name: "2 ms where a look costs next to nothing", pollMs: 0.005, pauseMs: 2 },
  { name: "longer where system calls are slow", pollMs: 0.05, pauseMs: 10 },
  { name: "never longer than 20 ms", pollMs: 30, pauseMs: 20 },
])("between two looks it pauses $name", ({ pollMs, pauseMs }) => {
  expect(pauseAfter(pollMs)).toBe(pauseMs);
});
