import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { beforeAll, describe, expect, it } from "vitest";
import { EXPECTED } from "./test-support/expected.ts";
import { MISTAKES, OF_KIT, withMistake } from "./test-support/mistakes.ts";
import { COPY_PREFIX } from "./test-support/other-build.ts";
import { onStage } from "./test-support/stage.ts";

const OBJECT = fileURLToPath(new URL("../dist/programs/sockets.bpf.o", import.meta.url));

const TITLES: Readonly<Record<string, string>> = {
  oneSocket: "one socket asks several services, keeps to its endpoint, and sees each as it asked for it",
  kept: "sockets of UDP that aren't connected keep to their endpoints while these serve, and choose anew when not",
  closed: "what a socket asked for is remembered as long as it is open, and no longer",
  crowd: "a socket of UDP is remembered, however many of TCP ask after it",
  nodePortAsClient: "answers of a server go to whom they are for, also if that has the port number of a node port",
  twoServices: "of two services with one endpoint the one that was asked last is shown",
  addresses: "node ports are on the node's addresses (R-37), and on no other",
  refusals: "whatever has no endpoint is refused with ECONNREFUSED (R-23, R-29)",
  affinityOfTwo: "a network namespace is one client of affinity (R-08)",
  optOut: "Services and network namespaces can opt out",
  flips: "a service is served, and by its own endpoints alone, while its list is replaced",
};

describe("socket load balancing on a real kernel", needs("root", "netns", "bpf", "cgroup2", "ip"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("has a title for every scenario", () => expect(Object.keys(TITLES)).toEqual(Object.keys(EXPECTED)));

  it.each(Object.entries(TITLES).map(([scenario, title]) => [title, scenario]))("%s", async (_, scenario = "") => {
    expect(await onStage("sockets", scenario, OBJECT)).toEqual(EXPECTED[scenario]);
  });
});

describe("deliberate mistakes in the programs", needs("root", "netns", "bpf", "cgroup2", "ip"), () => {
  it("are there for each program", () => {
    const source = readFileSync(new URL("programs/sockets.bpf.c", import.meta.url), "utf8");
    const programs = [...source.matchAll(/^int (turnout_\w+)\(/gm)].map(([, name]) => name);
    expect(programs.length).toBe(9);
    expect(programs.filter((name) => !MISTAKES.some(({ right }) => right.startsWith(`int ${name}(`)))).toEqual([]);
  });

  it.each(
    someOf(
      MISTAKES.filter(({ scenario }) => scenario !== OF_KIT),
      { oneOf: 4 },
    ).map((mistake) => [mistake.what, mistake] as const),
  )("are caught: %s", async (_, mistake) => {
    const seen = await withMistake(mistake, (objectFile) => onStage("sockets", mistake.scenario, objectFile));
    expect(seen).not.toEqual(EXPECTED[mistake.scenario]);
  });

  it("leave nothing behind", () => {
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith(COPY_PREFIX))).toEqual([]);
    expect(existsSync(OBJECT)).toBe(true);
  });
});
