import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import {
  ADDRESS_FLAGS,
  decodeAddress,
  decodeCookie,
  decodeDestination,
  decodeEndpoint,
  decodePlace,
  decodeService,
  encodeAddress,
  encodeCookie,
  encodeDestination,
  encodeEndpoint,
  encodeId,
  encodePlace,
  encodeService,
  SERVICE_FLAGS,
  STRUCTS,
  VERDICTS,
} from "./layout.ts";
import type { Struct } from "./layout.ts";
import { familyOfRow, listId, mapFolder, NO_LIST, rowId } from "../names.ts";
import { REFUSED_MARK } from "../packets/nft-table.ts";
import type { ServiceValue } from "../objects.ts";

const PROGRAMS = fileURLToPath(new URL("../programs", import.meta.url));

/** Have a compiler check claims about programs/layout.h; gives what it says. */
function compile(claims: readonly string[]): string {
  const source = ["#include <stddef.h>", '#include "layout.h"', ...claims.map((claim) => `_Static_assert(${claim}, "");`), ""].join("\n");
  const flags = ["-target", "bpf", "-fsyntax-only", "-I", PROGRAMS, "-I", `/usr/include/${machine()}-linux-gnu`, "-xc", "-"];
  try {
    execFileSync("clang", flags, { input: source, stdio: ["pipe", "pipe", "pipe"] });
    return "";
  } catch (error) {
    return error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
  }
}

function machine(): string {
  return process.arch === "arm64" ? "aarch64" : "x86_64";
}

function claimsOf(name: string, { bytes, fields }: Struct): readonly string[] {
  const places = Object.entries(fields).flatMap(([field, [offset, length]]) => [
    `offsetof(struct ${name}, ${field}) == ${offset}`,
    `sizeof(((struct ${name} *)0)->${field}) == ${length}`,
  ]);
  return [`sizeof(struct ${name}) == ${bytes}`, ...places];
}

describe("the layout", () => {
  it("is that of programs/layout.h", needs("bpf"), () => {
    const verdicts = Object.entries(VERDICTS).map(([name, number]) => `${name.toUpperCase()} == ${number}`);
    const claims = Object.entries<Struct>({ ...STRUCTS }).flatMap(([name, struct]) => claimsOf(name, struct));
    const flags = Object.entries({ ...SERVICE_FLAGS, ...ADDRESS_FLAGS }).map(([name, number]) => `${name} == ${number}`);
    expect(compile([...claims, ...verdicts, ...flags, `REFUSED_MARK == ${REFUSED_MARK}`])).toBe("");
    expect(compile(["sizeof(struct service) == 60"])).toContain("error");
  });

  it.each(Object.entries<Struct>({ ...STRUCTS }))(
    "has %s without gaps, so that a key has no bytes nobody wrote",
    (_, { bytes, fields }) => {
      let end = 0;
      for (const [offset, length] of Object.values(fields)) {
        expect(offset).toBe(end);
        end = offset + length;
      }
      expect(end).toBe(bytes);
    },
  );
});

describe("addresses", () => {
  it.each([
    ["10.96.0.10", "00000000000000000000ffff0a60000a"],
    ["0.0.0.0", "00000000000000000000ffff00000000"],
    ["::", "00000000000000000000000000000000"],
    ["::1", "00000000000000000000000000000001"],
    ["fd00:96::a", "fd00009600000000000000000000000a"],
  ])("%s", (text, hex) => {
    expect(encodeAddress(text).toString("hex")).toBe(hex);
    expect(decodeAddress(Buffer.from(hex, "hex"))).toBe(text);
  });

  it("refuses what is none", () => expect(() => encodeAddress("10.96.0")).toThrow("[invalid_object] this is no address: 10.96.0"));
});

describe("elements", () => {
  it.each([
    ["10.96.0.10:80/TCP", "00000000000000000000ffff0a60000a00500600"],
    ["[fd00:96::a]:53/UDP", "fd00009600000000000000000000000a00351100"],
    ["0.0.0.0:30080/SCTP", "00000000000000000000ffff0000000075808400"],
  ])("destination %s", (text, hex) => {
    expect(encodeDestination(text).toString("hex")).toBe(hex);
    expect(decodeDestination(Buffer.from(hex, "hex"))).toBe(text);
  });

  it("a destination of another protocol is none of ours", () => {
    expect(decodeDestination(Buffer.from("00000000000000000000ffff0a60000a00500100", "hex"))).toBeUndefined();
  });

  it.each([
    ["10.1.2.3:8080", "00000000000000000000ffff0a0102031f900000"],
    ["[fd00::3]:53", "fd00000000000000000000000000000300350000"],
  ])("endpoint %s", (text, hex) => {
    expect(encodeEndpoint(text).toString("hex")).toBe(hex);
    expect(decodeEndpoint(Buffer.from(hex, "hex"))).toBe(text);
  });

  it("a service, with each verdict", () => {
    const value: ServiceValue = {
      row: "0102030405060708",
      tenant: "3132333435363738",
      ranges: "2122232425262728",
      affinitySeconds: 10_800,
      affinitySets: 4096,
      podsPass: true,
      hostPass: false,
      isClusterIP: true,
      pod: { verdict: "serve", list: "1112131415161718", count: 3, masquerade: false },
      host: { verdict: "reject", list: NO_LIST, count: 0, masquerade: false },
      outside: { verdict: "drop", list: NO_LIST, count: 0, masquerade: true },
    };
    const hex = [
      "0102030405060708 3132333435363738 2122232425262728 302a0000 05000000",
      "1112131415161718 03000000 01000000",
      "0000000000000000 00000000 02000000",
      "0000000000000000 00000000 03010000",
      "00100000 00000000",
    ]
      .join("")
      .replaceAll(" ", "");
    expect(encodeService(value).toString("hex")).toBe(hex);
    expect(decodeService(Buffer.from(hex, "hex"))).toEqual(value);
    const other = { ...value, podsPass: false, hostPass: true, isClusterIP: false };
    expect(decodeService(encodeService(other))).toEqual(other);
    expect(decodeService(Buffer.alloc(88))).toBeUndefined();
  });

  it("a place and a cookie", () => {
    expect(encodePlace("1112131415161718", 258).toString("hex")).toBe("11121314151617180201000000000000");
    expect(decodePlace(encodePlace("1112131415161718", 258))).toEqual({ list: "1112131415161718", index: 258 });
    expect(encodeCookie("4097").toString("hex")).toBe("0110000000000000");
    expect(decodeCookie(encodeCookie("18446744073709551615"))).toBe("18446744073709551615");
    expect(() => encodeId("12")).toThrow("16 hexadecimal digits");
  });
});

describe("names in the maps", () => {
  it("rows of the two families differ in the last bit, which tells them", () => {
    const [four, six] = [rowId("shop/cart:http/TCP", "IPv4"), rowId("shop/cart:http/TCP", "IPv6")];
    expect(four).toMatch(/^[0-9a-f]{16}$/);
    expect([familyOfRow(four), familyOfRow(six)]).toEqual(["IPv4", "IPv6"]);
    expect(BigInt(`0x${four}`) ^ BigInt(`0x${six}`)).toBe(1n);
    expect(rowId("shop/cart:other/TCP", "IPv4")).not.toBe(four);
  });

  it("a list's is made by its endpoints and their order", () => {
    expect(listId(["10.1.2.3:80", "10.1.2.4:80"])).toBe(listId(["10.1.2.3:80", "10.1.2.4:80"]));
    expect(listId(["10.1.2.3:80", "10.1.2.4:80"])).not.toBe(listId(["10.1.2.4:80", "10.1.2.3:80"]));
    expect(listId(["10.1.2.3:80"])).not.toBe(NO_LIST);
  });

  it("a folder's tells layout and sizes, in whichever order", () => {
    expect(mapFolder({ services: 1, endpoints: 2 })).toMatch(/^v2-[0-9a-f]{16}$/);
    expect(mapFolder({ services: 1, endpoints: 2 })).toBe(mapFolder({ endpoints: 2, services: 1 }));
    expect(mapFolder({ services: 1, endpoints: 2 })).not.toBe(mapFolder({ services: 2, endpoints: 1 }));
  });
});
