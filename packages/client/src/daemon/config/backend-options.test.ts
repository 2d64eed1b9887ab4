import { ProxyError, type OptionKinds } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { optionsFromFlags, typedOption, type BackendOptions } from "./backend-options.ts";
import { loadConfig } from "./loaded-config.ts";
import { configFileText, runConfig } from "./run-config.ts";

const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
const KINDS: OptionKinds = {
  enabled: "switch",
  size: "number",
  name: "text",
  devices: "list",
  schedulers: "map",
  comments: "any",
  scheduler: "text",
};
const MODULE = { name: "toy", options: KINDS, proxyMode: "ipvs" };

const fromFlags = (...pairs: readonly string[]): BackendOptions => optionsFromFlags(pairs.map(typedOption), MODULE);

function configured(pairs: readonly string[], body?: string, found: BackendOptions = {}): BackendOptions {
  const file = body === undefined ? undefined : { path: "config.yaml", text: HEAD + body };
  const backendOptions = pairs.map(typedOption);
  return runConfig(loadConfig({ flags: {}, file, hostname: "node-a", backendOptions }), MODULE, { options: found }).backendOptions;
}

describe("--backend-option", () => {
  test.each<readonly [pairs: readonly string[], options: BackendOptions]>([
    [["enabled=1"], { enabled: true }],
    [["size=2.5"], { size: 2.5 }],
    [["name=17"], { name: "17" }],
    [["name=a", "name=b,c"], { name: "b,c" }],
    [["devices=a,b", "devices=c"], { devices: ["a", "b", "c"] }],
    [['devices="a,b",c'], { devices: ["a,b", "c"] }],
    [["devices="], { devices: [] }],
    [["schedulers=shop/a=lc,shop/b=sh", "schedulers=shop/a=rr"], { schedulers: { "shop/a": "rr", "shop/b": "sh" } }],
    [["comments=auto"], { comments: "auto" }],
    [["comments=false"], { comments: false }],
    [["undeclared=a,b", "undeclared=7"], { undeclared: 7 }],
  ])("%j", (pairs, options) => expect(fromFlags(...pairs)).toEqual(options));

  test.each<readonly [pair: string, message: string]>([
    ["enabled=yes", 'expected true or false, found "yes": --backend-option enabled'],
    ["size=x", 'expected a number, found "x": --backend-option size'],
    ['devices="a', "expected a list with commas"],
    ["schedulers=shop/a", 'expected name=text,other=text, found "shop/a": --backend-option schedulers'],
    ["on", '"on" is not name=value: --backend-option'],
  ])("%s is refused", (pair, message) => expect(() => fromFlags(pair)).toThrow(message));
});

describe("options of a backend", () => {
  const body = "mode: ipvs\nipvs: {scheduler: lc}\nturnout: {backendOptions: {devices: [a, b], name: file, size: null}}\n";

  test("a flag beats the file, which beats what was found", () => {
    expect(configured(["name=flag"], body, { name: "found", comments: "auto" })).toEqual({
      comments: "auto",
      scheduler: "lc",
      devices: ["a", "b"],
      name: "flag",
    });
  });

  test("the section turnout beats the section of the mode", () => {
    expect(configured([], `${body.slice(0, -3)}, scheduler: rr}}`)).toMatchObject({ scheduler: "rr" });
  });

  test.each<readonly [body: string, message: string]>([
    ["{devices: eth0}", 'expected a list, found "eth0": config.yaml: turnout.backendOptions.devices'],
    ['{enabled: "true"}', 'expected true or false, found "true": config.yaml: turnout.backendOptions.enabled'],
    ["{size: '7'}", "turnout.backendOptions.size"],
    ["[a]", 'expected a map of names to values, found ["a"]: config.yaml: turnout.backendOptions'],
  ])("%s in a file is refused", (options, message) => {
    expect(() => configured([], `turnout: {backendOptions: ${options}}\n`)).toThrow(message);
    expect(() => configured([], `turnout: {backendOptions: ${options}}\n`)).toThrow(ProxyError);
  });

  test("what is written as a file says the same again", () => {
    const given = ["devices=a,b", "devices=c", "name=17", "schedulers=shop/a=lc"];
    const loaded = loadConfig({ flags: {}, file: undefined, hostname: "node-a", backendOptions: given.map(typedOption) });
    const text = configFileText(loaded, MODULE);
    expect(configured([], text.replace(HEAD, "").replace(/^mode: .*$/m, "mode: ipvs"))).toMatchObject(fromFlags(...given));
  });
});
