import { expect, test } from "vitest";
import { bindAddressText, parseBindAddress } from "./bind-address.ts";

test.each([
  ["IPv4 with a port", "127.0.0.1:10249", "127.0.0.1:10249"],
  ["IPv4 alone", "0.0.0.0", "0.0.0.0:99"],
  ["IPv6 alone", "::", "[::]:99"],
  ["IPv6 in brackets", "[::1]:80", "[::1]:80"],
])("reads %s", (_name, text, expected) => {
  const address = parseBindAddress(text, 99);
  expect(address && bindAddressText(address)).toBe(expected);
});

test.each([
  ["a host name", "localhost:80"],
  ["port 0", "127.0.0.1:0"],
  ["a port too high", "127.0.0.1:65536"],
  ["no address", ":80"],
  ["IPv4 in brackets", "[127.0.0.1]:80"],
  ["IPv6 with a port but no brackets", "::1:80:zz"],
  ["nothing", ""],
])("refuses %s", (_name, text) => {
  expect(parseBindAddress(text, 99)).toBeUndefined();
});
