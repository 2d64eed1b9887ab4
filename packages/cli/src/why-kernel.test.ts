import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-why-"));
  await writeFile(join(directory, "cart.yaml"), CART);
});

afterAll(() => rm(directory, { recursive: true }));

describe("turnout why that reads everything itself", needs("root", "netns", "nft>=1.0.1", "ip"), () => {
  it("refuses a node name that no Node has, and blames nothing", async () => {
    const script = "$T why 10.1.1.9 10.96.0.10:80 --source file:cart.yaml --backend nft --hostname-override vm";
    expect(await scriptInNamespace(directory, script)).toEqual({
      code: 1,
      out: "",
      err: "turnout: [not_found] the source has no Node vm (it has: node1): give --node-name\n",
    });
  });
});
