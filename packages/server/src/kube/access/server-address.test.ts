import { describe, expect, it } from "vitest";
import { serverAddress } from "./server-address.ts";

/** As client-go v0.37.2 answers, without the trailing slash that a URL without a path has here. */
const TABLE: readonly (readonly [text: string, plain: string | undefined, tls?: string])[] = [
  ["10.0.0.1:6443", "http://10.0.0.1:6443", "https://10.0.0.1:6443"],
  ["10.0.0.1", "http://10.0.0.1", "https://10.0.0.1"],
  ["10.0.0.1:6443/", "http://10.0.0.1:6443", "https://10.0.0.1:6443"],
  ["api.example.com:6443", "http://api.example.com:6443", "https://api.example.com:6443"],
  ["localhost:6443", "http://localhost:6443", "https://localhost:6443"],
  ["localhost", "http://localhost", "https://localhost"],
  ["[fd00::1]:6443", "http://[fd00::1]:6443", "https://[fd00::1]:6443"],
  ["[fd00::1]", "http://[fd00::1]", "https://[fd00::1]"],
  ["HTTP://10.0.0.1:8080", "http://10.0.0.1:8080"],
  ["Https://10.0.0.1:6443/prefix/", "https://10.0.0.1:6443/prefix/"],
  ["https://[fd00::1]:6443", "https://[fd00::1]:6443"],
  ["10.0.0.1:6443/prefix", undefined],
  ["https:10.0.0.1", undefined],
  ["https:/10.0.0.1", undefined],
  ["unix:///run/api.sock", undefined],
  ["fd00::1", undefined],
  ["::1:6443", undefined],
  ["10.0.0.1:port", undefined],
  ["https://", undefined],
  ["", undefined],
  // client-go takes these, and fails at the first request.
  ["ftp://10.0.0.1", undefined],
  ["10.0.0.1:99999", undefined],
];

describe("an API server's address", () => {
  for (const [text, plain, tls = plain] of TABLE) {
    const read = (isTlsDefault: boolean): string | undefined => serverAddress(text, isTlsDefault)?.href.replace(/(:\/\/[^/]+)\/$/, "$1");
    it(`written as ${text}`, () => expect([read(false), read(true)]).toEqual([plain, tls]));
  }
});
