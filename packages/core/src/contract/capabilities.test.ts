import { expect, it } from "vitest";
import { abilitiesOf, ALL_CAPABILITIES, CAPABILITY_DEFAULTS } from "./capabilities.ts";

// Never make this longer. A backend that names ALL_CAPABILITIES is run by later cores of contract 2, too, and says nothing of what they add.
const FIRST = [
  "IPv4",
  "IPv6",
  "TCP",
  "UDP",
  "SCTP",
  "sessionAffinity",
  "sourceRanges",
  "clientAddress",
  "hairpin",
  "hostOrigin",
  "drop",
] as const;

it("ALL_CAPABILITIES names what contract 2 began with, and nothing that was added later", () => {
  expect(ALL_CAPABILITIES).toEqual(Object.fromEntries(FIRST.map((name) => [name, true])));
});

it("what was added later has its default with a backend that names ALL_CAPABILITIES", () => {
  const later = Object.entries(CAPABILITY_DEFAULTS).filter(([name]) => !FIRST.some((first) => first === name));
  expect(abilitiesOf({ capabilities: ALL_CAPABILITIES }).capabilities).toEqual({ ...ALL_CAPABILITIES, ...Object.fromEntries(later) });
});
