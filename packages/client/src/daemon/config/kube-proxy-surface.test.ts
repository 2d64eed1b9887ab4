import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { ProxyError } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { proxyFlags } from "../../test-support/proxy-flags.ts";
import { CONFIG_FLAGS } from "./config-flags.ts";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import { flagTexts } from "./flag-texts.ts";
import { loadConfig } from "./loaded-config.ts";
import { configFileText } from "./run-config.ts";
import { KUBE_PROXY_VERSION } from "./gen/kube-proxy-gates.ts";
import type { ConfigPath } from "./config-values.ts";

/** What kube-proxy has and says; written by `npm run kube-proxy:update`. */
interface Surface {
  readonly version: string;
  readonly flags: readonly { readonly name: string; readonly type: string; readonly default: string; readonly deprecated?: true }[];
  readonly fields: readonly string[];
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly cases: readonly {
    readonly args: readonly string[];
    readonly file?: string;
    readonly accepted: boolean;
    readonly why?: string;
    /** What the flags set to something else than the default, by path, as kube-proxy writes it. */
    readonly written?: Readonly<Record<string, unknown>>;
  }[];
}

const surface = JSON.parse(readFileSync(new URL("../../../test/kube-proxy/surface.json", import.meta.url), "utf8")) as Surface;
const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

/** Fields whose default is another one. */
const OTHER_DEFAULTS: Readonly<Record<string, string>> = {
  mode: "the backend is chosen at the start",
  detectLocalMode: "an empty one means ClusterCIDR, and /configz says so, there and here",
  "clientConnection.contentType": "Turnout reads JSON",
  "logging.format": "text at a terminal, else JSON",
  "iptables.minSyncPeriod": "a sync costs only what changed",
  "ipvs.minSyncPeriod": "the same; besides, kube-proxy writes only the section of its mode",
  "ipvs.syncPeriod": "kube-proxy writes only the section of its mode",
  "nftables.minSyncPeriod": "both of these",
  "nftables.syncPeriod": "kube-proxy writes only the section of its mode",
};

/** kube-proxy has them where it is built for Windows; Turnout is one program for both. */
const WINDOWS_FLAGS: readonly string[] = [
  "enable-dsr",
  "forward-healthcheck-vip",
  "network-name",
  "root-hnsendpoint-name",
  "source-vip",
  "windows-service",
];

/** Flags with another default than kube-proxy's, each with the reason. */
const OTHER_FLAG_DEFAULTS: Readonly<Record<string, string>> = {
  "iptables-min-sync-period": "a sync costs only what changed",
  "ipvs-min-sync-period": "the same",
  "kube-api-content-type": "Turnout reads JSON",
  "logging-format": "text at a terminal, else JSON",
};

/** Starts with another verdict than kube-proxy's, each with the reason; the key is the flags and the file. */
const OTHER_VERDICTS: Readonly<Record<string, string>> = {
  "--boot-id-file=": "kube-proxy had it up to 1.36",
  "--boot-id-file=/nonexistent": "the same",
  "--cluster-cidr=": "a manifest's variable may be empty",
  "--feature-gates=APIServerTracing=false": "kube-proxy had the gate up to 1.36",
  "--feature-gates=APIServerTracing=true": "the same",
  "--feature-gates=AllAlpha=true": "kube-proxy checks which gates need which",
  "--feature-gates=KMSv2=true": "kube-proxy had the gate up to 1.31",
  "--feature-gates=NFTablesProxyMode=false": "it is locked, and older kube-proxies take it",
  "--machine-id-file=": "kube-proxy had it up to 1.36",
  "--machine-id-file=/nonexistent": "the same",
  "--show-hidden-metrics-for-version=1.35": "kube-proxy 1.36 takes it",
  "featureGates: {APIServerTracing: false}": "kube-proxy had the gate up to 1.36",
  "showHiddenMetricsForVersion: '1.35'": "kube-proxy 1.36 takes it",
  "--bind-address= --bind-address=10.0.0.1": "kube-proxy panics",
  "--bind-address=host --bind-address=010.0.0.1": "only the address that counts is checked",
  "--healthz-bind-address= --healthz-bind-address=0.0.0.0": "kube-proxy panics",
  "--healthz-port=x --healthz-port=99": "only the port that counts is checked",
  "--metrics-bind-address= --metrics-bind-address=0.0.0.0": "kube-proxy panics",
  "--iptables-sync-period=500ms": "it is longer than Turnout's minSyncPeriod",
  "--metrics-port=0": "it turns the server off, as kube-proxy's help says",
  "--proxy-mode=kernelspace": "the backend winkernel says what it needs",
  "logging: {options: {json: {splitStream: true}}}": "kube-proxy forgets what a file says of it before it checks",
};

/** Starts with other values than kube-proxy's, each with the reason. */
const OTHER_VALUES: Readonly<Record<string, string>> = {
  "--hostname-override=  --hostname-override=Node-1": "the file has what was typed; the node's name is in lower case here, too",
  "--hostname-override=a b --hostname-override=Node-1": "the same",
  "--ipvs-sync-period=-1s --ipvs-sync-period=0": "kube-proxy writes only the section of its mode",
  "--ipvs-sync-period=0 --ipvs-sync-period=-1s": "the same",
  "--kube-api-content-type= --kube-api-content-type=application/json": "it is Turnout's default",
  "--logging-format=json --logging-format=text": "it is kube-proxy's default, and not Turnout's",
  "--proxy-mode= --proxy-mode=iptables": "the same",
  "--proxy-mode=ipvs --proxy-mode=iptables": "the same",
};

/** The configuration that a start's flags and file make, as a file. @throws {ProxyError} where it is refused. */
function fileOf(args: readonly string[], file: string | undefined): string {
  const flags = proxyFlags(args.filter((arg) => !/^--(master)=/.test(arg)));
  const text = file === undefined ? undefined : { path: "config.yaml", text: `${HEAD}${file}\n` };
  return configFileText(loadConfig({ flags, file: text, hostname: "host" }));
}

/** Whether a start's flags and file are taken. */
function isAccepted(args: readonly string[], file: string | undefined): boolean {
  try {
    fileOf(args, file);
    return true;
  } catch (error) {
    if (ProxyError.is(error, "invalid_object")) return false;
    throw error;
  }
}

/** What a start without flags is configured with. */
const DEFAULTS = valuesOf(fileOf([], undefined));

/** The values of a configuration file, by path. */
function valuesOf(text: string): (path: string) => unknown {
  const root: unknown = parse(text);
  return (path) => path.split(".").reduce((value, name) => (value as Readonly<Record<string, unknown>>)[name], root);
}

/** The fields that some flags set. */
function pathsOf(args: readonly string[]): readonly ConfigPath[] {
  const names = new Set(args.map((arg) => arg.replace(/^--([^=]*).*$/s, "$1")));
  return PATHS.filter((path) => names.has(FIELDS[path].flag ?? ""));
}

test("the list is of the kube-proxy whose feature gates are known", () => {
  expect(surface.version).toBe(KUBE_PROXY_VERSION);
});

test("no flag mirrors a field that kube-proxy has not, but for those of its Windows build", () => {
  const ours = CONFIG_FLAGS.map(({ name }) => name).filter((name) => !surface.flags.some((flag) => flag.name === name));
  expect(ours.toSorted()).toEqual(WINDOWS_FLAGS);
});

test("the configuration has kube-proxy's fields, and no others", () => {
  expect(PATHS.filter((path) => !path.startsWith("turnout.")).toSorted()).toEqual(surface.fields);
});

test("a flag's value is of the kind kube-proxy has", () => {
  const switches = new Set(surface.flags.filter(({ type }) => type === "bool").map(({ name }) => name));
  const ours = PATHS.flatMap((path) => FIELDS[path].flag ?? []).filter((name) => surface.flags.some((flag) => flag.name === name));
  const isSwitch = (name: string): boolean =>
    PATHS.some((path) => FIELDS[path].flag === name && FIELDS[path].kind.placeholder === undefined);
  expect(ours.filter((name) => isSwitch(name) !== switches.has(name))).toEqual([]);
});

test("defaults are kube-proxy's, but for those listed with their reasons", () => {
  const shown = (path: string): unknown => {
    const field = FIELDS[path as ConfigPath] as Field<unknown>;
    return field.kind.show(field.fallback);
  };
  // An address that is empty in the table follows bindAddress; an empty list is null as Go writes it.
  const same = (path: string, theirs: unknown): boolean =>
    path.endsWith("zBindAddress") || path === "metricsBindAddress" || JSON.stringify(shown(path)) === JSON.stringify(theirs ?? []);
  const other = Object.entries(surface.defaults).flatMap(([path, theirs]) => (same(path, theirs) ? [] : [path]));
  expect(other.toSorted()).toEqual(Object.keys(OTHER_DEFAULTS).toSorted());
});

test("/flagz shows kube-proxy's flags with its defaults, but for those listed with their reasons", () => {
  const shown = flagTexts({}, undefined);
  const other = surface.flags.filter((flag) => shown[flag.name] !== flag.default).map(({ name }) => name);
  expect(other.toSorted()).toEqual(Object.keys(OTHER_FLAG_DEFAULTS).toSorted());
  expect(flagTexts({ config: "a.yaml" }, "a.yaml")).toMatchObject({ config: "a.yaml" });
});

describe("each start that was tried with kube-proxy", () => {
  const named = surface.cases.map((one) => ({ ...one, name: one.file ?? one.args.join(" ") }));

  test("is taken or refused as there, but for those listed with their reasons", () => {
    // A flag that is given twice may have the reason that it has alone.
    const isKnown = (args: readonly string[]): boolean => args.length > 1 && args.some((arg) => Object.hasOwn(OTHER_VERDICTS, arg));
    const other = named.filter(({ args, file, accepted }) => isAccepted(args, file) !== accepted && !isKnown(args)).map(({ name }) => name);
    expect(other.toSorted()).toEqual(Object.keys(OTHER_VERDICTS).toSorted());
  });

  test("has the values in force that kube-proxy writes, also of flags that are given twice, but for those listed with their reasons", () => {
    const reported = named.filter(({ args, file, written }) => written !== undefined && isAccepted(args, file));
    const ours = (args: readonly string[]): Readonly<Record<string, unknown>> => {
      const all = valuesOf(fileOf(args, undefined));
      // As for kube-proxy: what is as without flags is not told.
      return Object.fromEntries(pathsOf(args).flatMap((path) => (isDeepStrictEqual(all(path), DEFAULTS(path)) ? [] : [[path, all(path)]])));
    };
    const theirs = (args: readonly string[], written: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
      Object.fromEntries(pathsOf(args).flatMap((path) => (Object.hasOwn(written, path) ? [[path, written[path]]] : [])));
    const other = reported
      .filter(({ args, written = {} }) => !isDeepStrictEqual(ours(args), theirs(args, written)))
      .map(({ name }) => name);
    expect(other.toSorted()).toEqual(Object.keys(OTHER_VALUES).toSorted());
    expect(reported.length).toBeGreaterThan(100);
  });

  test("there are starts of both kinds, and of every flag that has a field", () => {
    expect(named.filter(({ accepted }) => accepted).length).toBeGreaterThan(100);
    expect(named.filter(({ accepted }) => !accepted).length).toBeGreaterThan(100);
    const tried = new Set(named.flatMap(({ args }) => args.map((arg) => arg.replace(/^--([^=]*).*$/s, "$1"))));
    const flags = surface.flags.map(({ name }) => name).filter((name) => PATHS.some((path) => FIELDS[path].flag === name));
    expect(flags.filter((name) => !tried.has(name))).toEqual([]);
  });
});
