import { readFileSync } from "node:fs";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { describe, expect, it } from "vitest";
import { parseDebianLock } from "./debian-lock.ts";
import { npmClosure } from "./npm-lock.ts";
import type { NpmLock } from "./npm-lock.ts";
import { PLATFORMS } from "./platforms.ts";
import { billOfMaterials } from "./sbom.ts";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

describe("the bill of materials", () => {
  const lock = (JSON.parse(read("../../package-lock.json")) as { readonly packages: NpmLock }).packages;
  const debian = parseDebianLock(read("debian.lock")).filter(({ arch }) => arch === "arm64");
  const npm = npmClosure(lock, "packages/cli", PLATFORMS.arm64);
  const text = billOfMaterials({ repository: "turnout", version: "0.1.0", debian, npm });
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);

  it("is what CycloneDX's own schema wants", async () => {
    expect(await validator.validate(text)).toBeNull();
    expect(await validator.validate(text.replace('"purl"', '"plur"'))).not.toBeNull();
  });

  it("has every package of today's lock files, with a checksum, and its licence where npm knows it", () => {
    const { components } = JSON.parse(text) as {
      readonly components: readonly {
        readonly name: string;
        readonly purl?: string;
        readonly hashes?: object[];
        readonly licenses?: object[];
      }[];
    };
    expect(components.map(({ name }) => name)).toEqual(["debian", ...debian.map(({ name }) => name), ...npm.map(({ name }) => name)]);
    const others = components.filter(({ name }) => name !== "debian" && !name.startsWith("@turnout/"));
    expect(others.filter(({ hashes }) => hashes === undefined)).toEqual([]);
    expect(components.filter(({ purl, licenses }) => purl?.startsWith("pkg:npm/") === true && licenses === undefined)).toEqual([]);
    expect(components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["@koromix/koffi-linux-arm64", "@grpc/grpc-js", "nftables", "@turnout/core"]),
    );
  });

  it("names packages as scanners do", () => {
    expect(text).toMatch(/"pkg:deb\/debian\/libstdc%2B%2B6@[^"+]+\?arch=arm64&distro=debian-13"/);
    expect(text).toContain('"pkg:npm/%40turnout/core@');
  });
});
