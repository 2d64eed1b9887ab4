import { deflateRawSync } from "node:zlib";
import { formatWords, parseWords, seenAt } from "@turnout/conformance";
import { createRandom } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { BACKENDS } from "./backends.ts";
import { readCluster } from "./cluster.ts";
import type { Cluster } from "./cluster.ts";
import { EXAMPLE_SCENARIOS, examplesOf } from "./examples.ts";
import { fieldProblems } from "./field-problems.ts";
import type { ListField } from "./field-problems.ts";
import { cut, tooLong, tooMany } from "./limits.ts";
import { fragmentOf, stateOfFragment } from "./link.ts";
import { packetOf } from "./packet.ts";
import { FIRST_STATE } from "./state.ts";
import type { PlaygroundState } from "./state.ts";
import { fateText, tryBackend } from "./trial.ts";
import type { Trial } from "./trial.ts";
import { someOf } from "@turnout/house/some-of";

const SEES_NODE = " (sees the node)";

async function trialOf(backend: string, state: Partial<PlaygroundState>): Promise<Trial> {
  const entered = { ...FIRST_STATE, ...state };
  const cluster = readCluster(entered);
  const one = BACKENDS.find(({ module }) => module.name === backend)!;
  return await tryBackend(one, cluster, packetOf(entered, cluster));
}

describe("each backend does on its host in memory what the rules say", () => {
  it.each(BACKENDS.map(({ module }) => module.name))("%s", async (backend) => {
    for (const to of ["172.18.0.1:30080", "10.96.0.20:80", "10.96.0.20:81"]) {
      const { isAsRuled, tried } = await trialOf(backend, { to });
      expect({ to, isAsRuled, tried }).toMatchObject({ isAsRuled: true });
    }
  });
});

it("a client outside goes to endpoints on this node alone under the Local policy, and a pod anywhere", async () => {
  const { walk, tried, renderings } = await trialOf("nft", {});
  expect(fateText(walk!.fate)).toBe("to 10.1.1.2:8080");
  expect(walk?.steps.map(({ rule }) => rule)).toContain("R-30");
  expect(tried?.path.at(-1)).toContain("mark-postrouting");
  expect(renderings.map(({ family }) => family)).toEqual(["IPv4", "IPv6"]);
  const pod = await trialOf("nft", { from: "10.1.1.9" });
  expect(fateText(pod.walk!.fate)).toBe("to 10.1.1.2:8080 or 10.1.2.2:8080");
});

describe("the scenarios of the kit as examples", () => {
  it("are nearly all of them", () => {
    expect(EXAMPLE_SCENARIOS.length).toBeGreaterThan(170);
  });

  it.each(someOf(EXAMPLE_SCENARIOS, { oneOf: 16 }).map((scenario) => [scenario.name, scenario] as const))("%s", async (_name, scenario) => {
    for (const { state, say, packets } of examplesOf(scenario)) {
      const [first] = packets;
      if (first === undefined) continue;
      const { from, to, text } = first;
      const { tried, walk } = await trialOf("nft", { ...state, from, to });
      const words = text.slice(text.lastIndexOf(": ") + 2);
      const source = from === "host" ? "172.18.0.1" : from;
      const groups = tried!.endpoints.map((one) => seenAt(one.replace(SEES_NODE, ""), one.endsWith(SEES_NODE), source));
      expect({ say, text, became: formatWords({ is: tried!.is, groups }) }).toEqual({ say, text, became: formatWords(parseWords(words)) });
      expect(walk?.fate.is).toBe(tried?.is);
    }
  });
});

describe("what was entered", () => {
  it("is told about, line by line, and the rest counts", () => {
    const manifests = `${FIRST_STATE.manifests}---\nkind: Service\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: { name: d }\n---\n{ a: [\n`;
    const { complaints, changes } = readCluster({ ...FIRST_STATE, manifests, node: "node7" });
    expect(complaints).toEqual([
      expect.stringContaining("line 31: Service has no apiVersion"),
      expect.stringContaining("line 32: apps/v1 Deployment is nothing that a service proxy reads"),
      expect.stringMatching(/^line 38: can't be parsed \(.+\): correct it; until then it is left out$/),
      expect.stringContaining("there is no Node node7 (there is node1, node2)"),
    ]);
    expect(changes.IPv4.set.map(({ key }) => key)).toEqual(["shop/cart:http/TCP"]);
  });

  it("reports what Services can't have, and says what to write where the question can't be read", () => {
    const manifests = FIRST_STATE.manifests.replace(
      "ports: [{ name: http, port: 80",
      "externalIPs: [nonsense]\n  ports: [{ name: http, port: 80",
    );
    const cluster = readCluster({ ...FIRST_STATE, manifests });
    expect(cluster.issues.map(({ object }) => object)).toContain("Service shop/cart");
    expect(() => packetOf({ ...FIRST_STATE, to: "shop/cart" }, cluster)).toThrow("write the Service's address");
    expect(packetOf({ ...FIRST_STATE, to: " " }, cluster)).toBeUndefined();
  });
});

describe("a list of addresses", () => {
  const wrong: readonly (readonly [ListField, string, string])[] = [
    ["pods", "10.1.0.0/16, foo", '"foo" is no range of addresses: write CIDRs'],
    ["pods", "10.1.0.0/99", '"10.1.0.0/99" is no range of addresses: write CIDRs'],
    ["pods", "10.1.0.0", '"10.1.0.0" is no range of addresses: write CIDRs'],
    ["addresses", "192.0.2.7 192.0.2.0/24", '"192.0.2.0/24" is no address: write IP addresses'],
    ["nodePortAddresses", "primary,secondary", '"secondary" is no range of addresses: write primary, localhost, all, or CIDRs'],
  ];
  it.each(wrong)("that is wrong is told of: %s %j", (field, text, problem) => {
    const problems = fieldProblems({ ...FIRST_STATE, [field]: text });
    expect([...problems.keys()]).toEqual([field]);
    expect(problems.get(field)).toContain(problem);
  });

  it("that is right, or empty, is not", () => {
    const lists = {
      pods: "10.1.0.0/16, fd00::/48",
      addresses: "192.0.2.7 fd00::1",
      nodePortAddresses: "primary localhost,all 192.0.2.0/24",
    };
    expect(fieldProblems({ ...FIRST_STATE, ...lists })).toEqual(new Map());
    expect(fieldProblems({ ...FIRST_STATE, pods: " ", addresses: "", nodePortAddresses: "," })).toEqual(new Map());
    for (const { state } of EXAMPLE_SCENARIOS.flatMap(examplesOf)) expect(fieldProblems({ ...FIRST_STATE, ...state })).toEqual(new Map());
  });
});

describe("a page is no place", () => {
  const cluster = (services: number, endpoints: number): Cluster => {
    const all = Array.from({ length: endpoints }, (_, index) => ({ addresses: [`10.1.${index >> 8}.${index % 256}`] }));
    const documents = Array.from({ length: services }, (_, index) => [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: `s${index}` },
        spec: { clusterIP: `10.96.0.${index}`, ports: [{ port: 80 }] },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        addressType: "IPv4",
        ports: [{ port: 80 }],
        endpoints: all,
        metadata: { name: `s${index}`, labels: { "kubernetes.io/service-name": `s${index}` } },
      },
    ]);
    const manifests = documents.flat().map((one) => JSON.stringify(one));
    return readCluster({ ...FIRST_STATE, manifests: manifests.join("\n---\n") });
  };

  it("for too many rows and endpoints together, of one Service or of several", () => {
    expect(tooMany(cluster(1, 9_999))).toBeUndefined();
    expect(tooMany(cluster(1, 10_000))).toContain("These are 1 row with 10,000 endpoints");
    expect(tooMany(cluster(2, 5_000))).toContain("These are 2 rows with 10,000 endpoints");
  });

  it("for too much YAML, and JSON of any length is no YAML", () => {
    expect(tooLong("#".repeat(499_990))).toBeUndefined();
    expect(tooLong(`a: ${"x".repeat(500_000)}`)).toContain("These are 500,003 characters of YAML");
    expect(tooLong(`{ "a": "${"x".repeat(500_000)}"`)).toContain("These are 500,009 characters of YAML");
    expect(tooLong(`{ "a": "${"x".repeat(500_000)}" }\n---\n{ "b": "${"x".repeat(500_000)}" }\n---\na: b\n`)).toBeUndefined();
  });

  it("for very long texts, but the examples are none", () => {
    const lines = Array.from({ length: 1_002 }, (_, index) => String(index));
    expect(cut(lines, "turnout print")).toEqual({ shown: lines.slice(0, 1_000), rest: "and 2 more lines, which turnout print prints" });
    expect(cut(lines.slice(2), "turnout print")).toEqual({ shown: lines.slice(2), rest: undefined });
    for (const { state } of EXAMPLE_SCENARIOS.flatMap(examplesOf)) expect(tooLong(state.manifests)).toBeUndefined();
  });
});

describe("a link", () => {
  const fragmentFor = async (state: PlaygroundState): Promise<string> => (await fragmentOf(state)) ?? "";

  it("holds all that was entered", async () => {
    const state = { ...FIRST_STATE, manifests: "é\n".repeat(10_000), masqueradeAll: true, to: "" };
    const fragment = await fragmentFor(state);
    expect(fragment.length).toBeLessThan(500);
    expect(fragment).toMatch(/^#1=[\w-]+$/);
    await expect(stateOfFragment(fragment)).resolves.toEqual(state);
  });

  it("can be read where one is made, and none is made of what is too long", async () => {
    const random = createRandom(1);
    const letters = Array.from({ length: 40_000 }, () => String.fromCharCode(32 + Math.floor(random() * 90))).join("");
    // Letters at random take nearly all of their bits, one letter over and over takes next to none.
    for (const manifests of [letters.slice(0, 20_000), "x".repeat(3_900_000)]) {
      const fragment = await fragmentFor({ ...FIRST_STATE, manifests });
      await expect(stateOfFragment(fragment)).resolves.toEqual({ ...FIRST_STATE, manifests });
    }
    for (const manifests of [letters, "x".repeat(4_000_000)]) {
      await expect(fragmentOf({ ...FIRST_STATE, manifests })).resolves.toBeUndefined();
    }
  });

  it.each(["", "#", "#2=abc", "#1=!", "#1=AAAA", "#1="])("that is %j is none", async (fragment) => {
    await expect(stateOfFragment(fragment)).resolves.toBeUndefined();
  });

  it("that is cut off, holds something else or unpacks to very much is none", async () => {
    const whole = await fragmentFor(FIRST_STATE);
    await expect(stateOfFragment(whole.slice(0, -20))).resolves.toBeUndefined();
    for (const other of [[1], { ...FIRST_STATE, to: 7 }, { ...FIRST_STATE, manifests: "x".repeat(5_000_000) }]) {
      const fragment = `#1=${deflateRawSync(JSON.stringify(other)).toString("base64url")}`;
      await expect(stateOfFragment(fragment)).resolves.toBeUndefined();
    }
    const packed = `#1=${deflateRawSync(JSON.stringify(FIRST_STATE)).toString("base64url")}`;
    await expect(stateOfFragment(packed)).resolves.toEqual(FIRST_STATE);
  });
});
