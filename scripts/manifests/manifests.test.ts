import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { V1ClusterRoleBinding, V1DaemonSet, V1PodSpec } from "@kubernetes/client-node";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { RECIPES } from "../images/recipes.ts";
import { chartWithVersion } from "../release/raise-versions.ts";
import { CLEANUP, MANIFESTS, readManifests, RENDERED, RENDERED_OF, sourcesChecksum, VARIANTS } from "./variants.ts";
import type { Manifest } from "./variants.ts";
import { problemsOf } from "./validate.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

function rendered(name: string): readonly Manifest[] {
  return readManifests(read(join(MANIFESTS, RENDERED, `${name}.yaml`)));
}

function podsOf(manifests: readonly Manifest[]): readonly V1PodSpec[] {
  return (manifests as readonly Partial<V1DaemonSet>[]).flatMap(({ spec }) => spec?.template?.spec ?? []);
}

/** The table of docs/security.md: capabilities by backend, without CAP_. */
function documentedCapabilities(): ReadonlyMap<string, readonly string[]> {
  const table = new Map<string, string[]>();
  let backend = "";
  for (const line of read("docs/security.md").split("\n")) {
    const [, name = "", rights = ""] = line.split("|").map((cell) => cell.trim());
    if (!line.startsWith("|") || (name !== "" && !(name in RECIPES))) continue;
    if (name !== "") backend = name;
    const found = [...rights.matchAll(/CAP_([A-Z_]+)/g)].map((match) => match[1] ?? "");
    if (found.length > 0) table.set(backend, [...(table.get(backend) ?? []), ...found].toSorted());
  }
  return table;
}

describe("what is rendered", () => {
  it("is of today's sources: else run npm run manifests", () => {
    const { sources } = JSON.parse(read(join(MANIFESTS, RENDERED_OF))) as { readonly sources: string };
    expect(sources).toBe(sourcesChecksum(ROOT));
    const names = [...VARIANTS.map(({ name }) => name), CLEANUP].toSorted();
    expect(globSync("*.yaml", { cwd: join(ROOT, MANIFESTS, RENDERED) }).toSorted()).toEqual(names.map((name) => `${name}.yaml`));
    expect(globSync("*", { cwd: join(ROOT, MANIFESTS, "overlays") }).toSorted()).toEqual(names);
  });

  it("is not of the chart's version, which each release raises", () => {
    const copy = mkdtempSync(join(tmpdir(), "turnout-manifests-"));
    try {
      cpSync(join(ROOT, MANIFESTS), join(copy, MANIFESTS), { recursive: true });
      const chart = join(copy, MANIFESTS, "chart/Chart.yaml");
      writeFileSync(chart, chartWithVersion(readFileSync(chart, "utf8"), "9.9.9"));
      expect(sourcesChecksum(copy)).toBe(sourcesChecksum(ROOT));
      writeFileSync(chart, readFileSync(chart, "utf8").replace("name: turnout", "name: other"));
      expect(sourcesChecksum(copy)).not.toBe(sourcesChecksum(ROOT));
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });

  it("is what Kubernetes takes", () => {
    const names = [...VARIANTS.map(({ name }) => name), CLEANUP];
    const files = [...names.map((name) => rendered(name)), readManifests(read("deploy/windows/turnout.yaml"))];
    expect(files.filter((manifests) => manifests.length === 0)).toEqual([]);
    expect(problemsOf(files.flat())).toEqual([]);
  });

  it("Kubernetes would not take with a mistake", () => {
    const text = JSON.stringify(rendered("nft").find(({ kind }) => kind === "DaemonSet"));
    const mistakes = [
      text.replace('"securityContext"', '"securityContxt"'),
      text.replace('"hostNetwork":true', '"hostNetwork":"yes"'),
      text.replace(/"selector":\{.*?\}\}/, '"selector":{}').replace('"template"', '"templates"'),
      text.replace('"kind":"DaemonSet"', '"kind":"DaemonSets"'),
      text.replace('"apps/v1"', '"app/v1"'),
      text.replace(/"selector":\{.*?\}\},/, ""),
    ];
    expect(mistakes.filter((mistake) => mistake === text)).toEqual([]);
    const found = problemsOf(mistakes.map((mistake) => JSON.parse(mistake) as Manifest)).map((problem) => problem.split(".")[0]);
    expect(new Set(found)).toEqual(new Set(mistakes.map((_, index) => String(index))));
  });
});

describe("rights", () => {
  it.for(VARIANTS)("of $name are no more than needed", ({ name, values }) => {
    const manifests = rendered(name);
    const bound = manifests.filter(({ kind }) => kind.includes("Role")) as readonly Partial<V1ClusterRoleBinding>[];
    expect(bound.map(({ roleRef }) => roleRef?.name)).toEqual(["system:node-proxier"]);
    const pods = podsOf(manifests);
    const all = pods.flatMap(({ containers, initContainers = [] }) => [...initContainers, ...containers]);
    expect(all.filter(({ securityContext }) => securityContext?.readOnlyRootFilesystem !== true)).toEqual([]);
    // What sets kernel parameters ends before anything else begins.
    expect(all.filter(({ securityContext }) => securityContext?.privileged === true).map(({ args }) => args?.[1])).toEqual(
      values.backend === "userspace" ? [] : ["--init-only"],
    );
    const lasting = pods.flatMap(({ containers }) => containers);
    expect(
      lasting.filter(
        ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false || securityContext.capabilities?.drop?.[0] !== "ALL",
      ),
    ).toEqual([]);
    for (const { securityContext } of lasting.filter((one) => one.name === "server"))
      expect(securityContext).toMatchObject({ runAsNonRoot: true, capabilities: { drop: ["ALL"] } });
  });

  const documented = documentedCapabilities();

  it.for(VARIANTS)("the capabilities of $name are those of docs/security.md", ({ name, values }) => {
    const wanted =
      values.backend === "all"
        ? [...new Set(["nft", "iptables", "ipvs", "ebpf"].flatMap((one) => documented.get(one) ?? []))]
        : documented.get(values.backend);
    const proxy = podsOf(rendered(name)).flatMap(({ containers }) => containers.filter((one) => one.name === "turnout"));
    expect(proxy.map(({ securityContext }) => securityContext?.capabilities?.add)).toEqual([wanted?.toSorted()]);
  });

  it.for(VARIANTS.filter(({ values }) => values.layout !== "node"))(
    "what programs the kernel in $name has no token of Kubernetes",
    ({ name }) => {
      const pod = podsOf(rendered(name)).find(({ containers }) => containers.some((one) => one.name === "turnout"));
      expect(pod?.automountServiceAccountToken).toBe(false);
      const proxy = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].filter((one) => one.name !== "server");
      expect(proxy.flatMap(({ volumeMounts = [] }) => volumeMounts.map((one) => one.name))).not.toContain("token");
      expect(proxy.at(-1)?.args?.some((arg) => arg.startsWith("--source=api:"))).toBe(true);
    },
  );
});

describe("values of the chart", () => {
  const isTaken = new Ajv().compile(JSON.parse(read(join(MANIFESTS, "chart/values.schema.json"))) as object);
  const values = (path: string, value: unknown): unknown => {
    const all = parse(read(join(MANIFESTS, "chart/values.yaml"))) as Record<string, unknown>;
    const [section = "", field] = path.split(".");
    return { ...all, [section]: field === undefined ? value : { ...(all[section] as object), [field]: value } };
  };

  it.each([
    ["backend", "ebpf"],
    ["image.registry", "registry.example.com:5000/net/turnout"],
    ["image.digest", `sha256:${"0".repeat(64)}`],
    ["pullSecrets", [{ name: "one" }]],
    ["resources", { limits: { memory: "200Mi" } }],
    ["central.certificate", "/etc/turnout-node/node.pem"],
    ["central.address", "[fd00::1]:12090"],
  ])("%s may be %j", (path, value) => {
    expect([isTaken(values(path, value)), isTaken.errors]).toEqual([true, null]);
  });

  it.each([
    ["backend", undefined],
    ["image", undefined],
    ["image.tag", undefined],
    ["central.certificate", undefined],
    ["backend", null],
    ["backend", "winkernel"],
    ["layout", "splt"],
    ["image", null],
    ["image.registry", "a b"],
    ["image.registry", ""],
    ["image.tag", "latest:x"],
    ["image.digest", "sha256:1"],
    ["pullSecrets", ["one"]],
    ["configMap", 123],
    ["configMap", "No Name"],
    ["resources", { cpu: "50m" }],
    ["server.resources", { limits: { cpu: true } }],
    ["central.secret", true],
    ["central.certificate", "node.pem"],
    ["central.replicas", 0],
    ["unknown", 1],
  ])("%s may not be %j", (path, value) => {
    expect(isTaken(values(path, value))).toBe(false);
  });
});

describe("images", () => {
  it("are those that npm run image makes", () => {
    const repositories = new Set(Object.values(RECIPES).map(({ repository }) => `turnout.local/${repository}:dev`));
    const named = VARIANTS.flatMap(({ name }) =>
      podsOf(rendered(name)).flatMap(({ containers, initContainers = [] }) => [...containers, ...initContainers]),
    );
    expect(new Set(named.map(({ image }) => image))).toEqual(repositories);
  });

  it("of the chart have the command's version", () => {
    const chart = read(join(MANIFESTS, "chart/Chart.yaml"));
    const { version } = JSON.parse(read("packages/cli/package.json")) as { readonly version: string };
    expect(/^version: (.*)$/m.exec(chart)?.[1]).toBe(version);
    expect(/^appVersion: (.*)$/m.exec(chart)?.[1]).toBe(version);
    expect(existsSync(join(ROOT, MANIFESTS, "chart/values.schema.json"))).toBe(true);
  });
});
