import { asks, asksUnmasked, EVERY_WAY } from "../probes.ts";
import type { Probe } from "../../runner/scenario.ts";

/** Addresses no Service and no endpoint may have. */
export const FORBIDDEN: readonly string[] = [
  "127.0.0.1",
  "0.0.0.0",
  "169.254.169.254",
  "224.0.0.1",
  "255.255.255.255",
  "::1",
  "::",
  "fe80::1",
  "ff02::1",
];
/** Everything that is no address. */
export const NONSENSE: readonly unknown[] = [
  "",
  "web",
  "10.96.0",
  "10.96.0.256",
  "0x0a600001",
  "10.96.0.1/32",
  "1.2.3.4; flush ruleset",
  'x" }',
  "\u0000",
  "fd00::1%eth0",
  "::g",
  7,
  null,
  {},
];
/** The good service beside the bad ones works. */
export const GOOD: readonly Probe[] = [
  ...asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
  ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1"),
];
