import { describe, expect, it } from "vitest";
import { registryFrom, tagFrom } from "./reference.ts";

describe("the name of an image", () => {
  it.each(["turnout.local", "localhost", "registry.example:5000", "ghcr.io/some_one/a__b/c-d.e", "10.0.0.1:5000/x", "[fd00::1]:5000/x"])(
    "may begin with %s",
    (text) => expect(registryFrom(text)).toBe(text),
  );

  it.each([
    "",
    "/",
    "turnout.local/",
    "/team",
    "UPPER/Case",
    "a b",
    "a//b",
    "https://ghcr.io",
    "a/-b",
    "a/b:tag",
    "-a",
    `a/${"b".repeat(250)}`,
  ])("can't begin with %j", (text) => expect(() => registryFrom(text)).toThrow(`--registry ${JSON.stringify(text)}: `));

  it.each(["dev", "0.1.0", "_x", "v1.2-rc.1_3", "a".repeat(128)])("may end with the tag %s", (text) => expect(tagFrom(text)).toBe(text));

  it.each(["", "latest:x", ".a", "-a", "a/b", "a b", "a\n", "a".repeat(129)])("can't end with the tag %j", (text) =>
    expect(() => tagFrom(text)).toThrow(`--tag ${JSON.stringify(text)}: `),
  );
});
