import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { summarize } from "./file-contents.ts";
import { readDocument, splitDocuments, withApiDefaults } from "./manifest.ts";

const service = { apiVersion: "v1", kind: "Service", metadata: { name: "cart", namespace: "shop" }, spec: { clusterIP: "10.0.0.1" } };
const slice = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "cart-1", namespace: "shop" } };

function keys(text: string): readonly string[] {
  return readDocument(text).objects.map(({ kind, key }) => `${kind} ${key}`);
}

describe("splitDocuments", () => {
  const cases: readonly (readonly [name: string, text: string, lines: readonly number[]])[] = [
    ["nothing", "", []],
    ["only comments, blank lines and directives", "# a\n\n%YAML 1.2\n---\n  \n# b\n---\n", []],
    ["one without markers", "a: 1\n", [1]],
    ["one after a marker", "---\na: 1\n", [1]],
    ["several", "a: 1\n---\nb: 2\n--- # c\nc: 3\n", [1, 2, 4]],
    ["Windows line ends", "a: 1\r\n---\r\nb: 2\r\n", [1, 2]],
    ["a marker that is none: no space, not at the start", "a: |\n  ---\nb: ---x\n---x: 1\n", [1]],
    ["a byte order mark", "\uFEFFa: 1\n", [1]],
  ];
  it.each(cases)("%s", (_name, text, lines) => {
    expect(splitDocuments(text).map(({ line }) => line)).toEqual(lines);
  });

  it("gives equal text equal hashes", () => {
    const [first, second, third] = splitDocuments("---\na: 1\n---\na: 1\n---\na: 2\n");
    expect(first?.hash).toBe(second?.hash);
    expect(third?.hash).not.toBe(first?.hash);
  });
});

describe("readDocument", () => {
  it("reads JSON and YAML alike", () => {
    const yaml = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\nspec: {clusterIP: 10.0.0.1}\n";
    expect(readDocument(yaml)).toEqual(readDocument(JSON.stringify(service)));
    expect(keys(yaml)).toEqual(["Service shop/cart"]);
  });

  it("reads lists, typed lists whose items don't say what they are, and lists in lists", () => {
    const { apiVersion: _a, kind: _k, ...bare } = service;
    const typed = { apiVersion: "v1", kind: "ServiceList", items: [bare] };
    expect(keys(JSON.stringify({ apiVersion: "v1", kind: "List", items: [service, slice, typed] }))).toEqual([
      "Service shop/cart",
      "EndpointSlice shop/cart-1",
      "Service shop/cart",
    ]);
  });

  it("puts what has no namespace into default, and cluster-scoped kinds into none", () => {
    expect(keys(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}`)).toEqual(["Service default/a"]);
    expect(keys(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","namespace":"x"}}`)).toEqual(["Node /a"]);
  });

  const hidden: readonly (readonly [string, unknown])[] = [
    ["another proxy's", { ...service, metadata: { ...service.metadata, labels: { "service.kubernetes.io/service-proxy-name": "" } } }],
    ["a headless one's slice", { ...slice, metadata: { ...slice.metadata, labels: { "service.kubernetes.io/headless": "" } } }],
    ["headless", { ...service, spec: { clusterIP: "None" } }],
  ];
  it.each(hidden)("leaves out what an API server would not show, and names the Services: %s", (_name, object) => {
    const text = JSON.stringify(object);
    const services = text.includes('"Service"') ? [JSON.parse(text) as unknown] : [];
    expect(readDocument(text)).toEqual({ objects: [], hidden: services, problems: [], ignored: [], isReadable: true });
  });

  it("shows a Service labelled headless that has a cluster IP, and a slice labelled for another proxy, as an API server does", () => {
    const labelled = (object: { readonly metadata: object }, label: string): string =>
      JSON.stringify({ ...object, metadata: { ...object.metadata, labels: { [label]: "" } } });
    expect(keys(labelled(service, "service.kubernetes.io/headless"))).toEqual(["Service shop/cart"]);
    expect(keys(labelled(slice, "service.kubernetes.io/service-proxy-name"))).toEqual(["EndpointSlice shop/cart-1"]);
  });

  const external: readonly (readonly [string, string])[] = [
    ["apps/v1", "Deployment"],
    ["serving.knative.dev/v1", "Service"],
    ["v1", "ConfigMap"],
  ];
  it.each(external)("ignores %s %s", (apiVersion, kind) => {
    expect(readDocument(JSON.stringify({ apiVersion, kind, metadata: { name: "a" } })).ignored).toEqual([`${apiVersion} ${kind}`]);
  });

  const wrong: readonly (readonly [name: string, text: string, line: number, what: RegExp, isReadable: boolean])[] = [
    ["YAML that isn't", "a: 1\nb: [1,\nc: }\n", 2, /^can't be parsed/, false],
    ["JSON that isn't", `{"a": 1,\n"b": 2\n"c": 3}\n`, 1, /^can't be parsed/, false],
    ["JSON cut short", `{"a": 1,\n"b": [`, 1, /^can't be parsed/, false],
    ["a key twice", "kind: a\nkind: b\n", 1, /^can't be parsed \(Map keys must be unique/, false],
    ["an alias without an anchor", "a: 1\nb: *c\n", 1, /^can't be (parsed|expanded)/, false],
    ["an alias that holds itself", "apiVersion: v1\nkind: List\nitems: &a [*a]\n", 2, /^can't be expanded \([^\n]*\)$/, false],
    ["binary", "\u0000\u0001\u0002: [", 0, /^can't be parsed/, false],
    ["a scalar", "hello", 0, /^is not an object/, false],
    ["a sequence", "# x\n- a\n", 1, /^is not an object/, false],
    ["no kind", "\n\nfoo: 1\n", 2, /^has no kind/, true],
    ["no apiVersion", "kind: Service\n", 0, /^Service has no apiVersion/, true],
    ["no name", "apiVersion: v1\nkind: Service\nmetadata: {}\n", 0, /^Service has no metadata.name/, false],
    ["a namespace that is none", "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: a/b}}", 0, /namespace/, false],
    ["an old version", "{apiVersion: discovery.k8s.io/v1beta1, kind: EndpointSlice, metadata: {name: a}}", 0, /v1beta1 is not read/, true],
    ["an item of a list", "{apiVersion: v1, kind: List, items: [1]}", 0, /^items\[0\]: is not an object/, false],
    ["an item without kind", "{apiVersion: v1, kind: List, items: [{metadata: {name: a}}]}", 0, /^items\[0\]: has no kind/, false],
    ["an item without apiVersion", "{apiVersion: v1, kind: List, items: [{kind: Service}]}", 0, /^items\[0\]: Service has no api/, false],
  ];
  it.each(wrong)("says where and what: %s", (_name, text, line, what, isReadable) => {
    const { problems, ...rest } = readDocument(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.what).toMatch(what);
    expect(problems[0]?.lineOffset).toBe(line);
    expect(rest.isReadable).toBe(isReadable);
  });

  it("refuses aliases that multiply without end", () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(",")}]`);
    const { problems, isReadable } = readDocument(["l0: &l0 x", ...levels].join("\n"));
    expect(isReadable).toBe(false);
    expect(problems[0]?.what).toMatch(/^can't be expanded/);
  });

  it("reads JSON that is nested however deeply, and YAML that the parser can read", () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    const json = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"externalIPs":${deep}}}`;
    const document = readDocument(json);
    expect(document.objects.map(({ key }) => key)).toEqual(["default/a"]);
    expect(summarize({ hash: "", line: 1 }, document).entries).toHaveLength(1);
    for (const yaml of ["- ".repeat(20_000), "a: 1\n".concat("? ".repeat(10_000))])
      expect(readDocument(`${yaml}x`).problems).toMatchObject([{ isUnclear: true }]);
    expect(readDocument(`${"? ".repeat(500)}x`)).toMatchObject({ problems: [{ what: "has no kind" }], isReadable: true });
    const blocks = Array.from({ length: 70 }, (_, level) => `${"  ".repeat(level)}p:\n`).join("");
    const accepted = readDocument(
      `apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: 10.96.0.9, externalIPs: ${deep.slice(4_900, 5_100)}}\n`,
    );
    expect(accepted).toMatchObject({ objects: [{ key: "default/a", object: { spec: { clusterIP: "10.96.0.9" } } }], problems: [] });
    const other = readDocument(`${blocks}apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n`);
    expect(other).toMatchObject({ ignored: ["apiextensions.k8s.io/v1 CustomResourceDefinition"], problems: [], isReadable: true });
  });
});

it("keeps no file's text alive: what is read of a YAML file is small, and stays for years", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heapBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const padding = "x".repeat(4_000_000);
  const before = heapBytes();
  const read = Array.from({ length: 20 }, (_, version) =>
    readDocument(`# ${padding}${version}\n{apiVersion: v1, kind: Service, metadata: {name: a-name-of-many-letters-${version}}}`),
  );
  const growth = heapBytes() - before;
  expect(new Set(read.map(({ objects }) => objects[0]?.key)).size).toBe(20);
  // All twenty texts are 80 MB; regular expressions remember the last one or two they saw.
  expect(growth).toBeLessThan(20_000_000);
});

const sliceWith = (ports: unknown): { metadata: { name: string }; ports: unknown } => ({ metadata: { name: "s" }, ports });

describe("withApiDefaults", () => {
  it.each<[string, unknown, unknown]>([
    [
      "an unnamed slice port is the port named nothing",
      [{ port: 80 }, { name: null, port: 81 }],
      [
        { port: 80, name: "" },
        { name: "", port: 81 },
      ],
    ],
    ["a named one keeps its name", [{ name: "http", port: 80 }], [{ name: "http", port: 80 }]],
    ["no ports stay no ports", null, null],
    ["nonsense is left to the core", ["x", 3], ["x", 3]],
  ])("%s", (_name, given, expected) => {
    expect(withApiDefaults("EndpointSlice", sliceWith(given))).toEqual(sliceWith(expected));
  });

  it("leaves other kinds alone", () => {
    const other = sliceWith([{ port: 80 }]);
    expect(withApiDefaults("Service", other)).toBe(other);
  });
});
