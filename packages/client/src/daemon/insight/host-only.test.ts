import { describe, expect, test } from "vitest";
import { reasonToRefuse } from "./host-only.ts";

const OWN = ["10.0.0.7", "fd00::7"];
const cases: readonly (readonly [name: string, remoteAddress: string, host: string, answers: "yes" | "no"])[] = [
  ["loopback", "127.0.0.1", "127.0.0.1:10249", "yes"],
  ["all of loopback", "127.3.2.1", "localhost:10249", "yes"],
  ["loopback of IPv6", "::1", "[::1]:10249", "yes"],
  ["loopback as a server for both families tells it", "::ffff:127.0.0.1", "127.0.0.1", "yes"],
  ["an own address", "10.0.0.7", "10.0.0.7:10249", "yes"],
  ["an own address of IPv6", "fd00:0::7", "[fd00::7]:10249", "yes"],
  ["a client that sends no Host header", "127.0.0.1", "", "yes"],
  ["another host", "10.0.0.8", "10.0.0.7:10249", "no"],
  ["another host of IPv6", "fd00::8", "[fd00::7]:10249", "no"],
  ["an address that begins like loopback", "12.7.0.1", "10.0.0.7", "no"],
  ["a client that is gone", "", "127.0.0.1", "no"],
  ["a stranger's name for this host, in a browser on this host", "127.0.0.1", "evil.example:10249", "no"],
  ["a name that begins like localhost", "127.0.0.1", "localhost.evil.example", "no"],
];

describe("who is answered", () => {
  test.each(cases)("%s", (_name, remoteAddress, host, answers) => {
    expect(reasonToRefuse({ remoteAddress, host }, OWN) === undefined ? "yes" : "no").toBe(answers);
  });
});
