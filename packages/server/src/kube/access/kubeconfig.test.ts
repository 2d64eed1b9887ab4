import { ProxyError } from "@turnout/core";
import { stringify } from "yaml";
import { describe, expect, it } from "vitest";
import { kubeconfigPaths, parseKubeconfig, serverAddress } from "./kubeconfig.ts";

const cluster = { name: "c", cluster: { server: "https://192.0.2.1:6443/prefix", "certificate-authority": "ca.crt" } };
const user = { name: "u", user: { tokenFile: "/run/token", "client-key-data": "a2V5" } };
const context = { name: "x", context: { cluster: "c", user: "u" } };
const whole = { clusters: [cluster], users: [user], contexts: [context], "current-context": "x" };

const file = (content: unknown, path = "/etc/k/config"): { path: string; text: string } => ({ path, text: stringify(content) });

describe("parseKubeconfig", () => {
  it("finds the current context, with paths relative to the file and data decoded", () => {
    expect(parseKubeconfig([file(whole)])).toMatchObject({
      name: "x",
      cluster: { server: new URL("https://192.0.2.1:6443/prefix"), caFile: "/etc/k/ca.crt", isInsecure: false },
      user: { tokenFile: "/run/token", keyData: "key", plugin: undefined },
    });
  });

  it("puts several files together, the first file's entries first", () => {
    const other = { ...whole, clusters: [{ name: "c", cluster: { server: "https://other" } }], "current-context": "y" };
    const parsed = parseKubeconfig([file({ ...whole, users: [], clusters: [] }, "/a/1"), file(other, "/b/2")]);
    expect([parsed.name, parsed.cluster.server.host, parsed.user.tokenFile]).toEqual(["x", "other", "/run/token"]);
    expect(kubeconfigPaths("/a::/b")).toEqual(["/a", "/b"]);
  });

  it("starts a relative login program at the kubeconfig, and leaves a bare name to PATH", () => {
    const exec = (command: string): unknown => ({ ...whole, users: [{ name: "u", user: { exec: { command } } }] });
    expect(parseKubeconfig([file(exec("./bin/login"))]).user.plugin).toEqual({ exec: { command: "/etc/k/bin/login" } });
    expect(parseKubeconfig([file(exec("aws"))]).user.plugin).toEqual({ exec: { command: "aws" } });
  });

  it("takes a context without a user as anonymous", () => {
    const anonymous = { ...whole, contexts: [{ name: "x", context: { cluster: "c" } }] };
    expect(parseKubeconfig([file(anonymous)]).user.token).toBeUndefined();
  });

  const schemes: readonly (readonly [name: string, cluster: object, user: object, scheme: string])[] = [
    ["nothing", {}, {}, "http:"],
    ["a token", {}, { token: "secret" }, "http:"],
    ["a name of the certificate", { "tls-server-name": "api" }, {}, "http:"],
    ["an authority's file", { "certificate-authority": "ca.crt" }, {}, "https:"],
    ["an authority", { "certificate-authority-data": "Y2E=" }, {}, "https:"],
    ["no check of the certificate", { "insecure-skip-tls-verify": true }, {}, "https:"],
    ["a client certificate's file", {}, { "client-certificate": "a.crt" }, "https:"],
    ["a client certificate", {}, { "client-certificate-data": "Y2E=" }, "https:"],
  ];
  it.each(schemes)("completes an address without a scheme: %s", (_name, tls, login, scheme) => {
    const content = {
      ...whole,
      clusters: [{ name: "c", cluster: { ...tls, server: "192.0.2.1:6443" } }],
      users: [{ name: "u", user: login }],
    };
    expect(parseKubeconfig([file(content)]).cluster.server.href).toBe(`${scheme}//192.0.2.1:6443/`);
  });

  it("takes the address of --master instead, with its own TLS material", () => {
    const content = { ...whole, clusters: [{ name: "c", cluster: { "certificate-authority": "ca.crt" } }] };
    expect(parseKubeconfig([file(content)], "[fd00::1]:6443").cluster.server.href).toBe("https://[fd00::1]:6443/");
  });

  const broken: readonly (readonly [name: string, content: unknown, what: string])[] = [
    ["empty", "", "is empty or not a mapping"],
    ["no current context", { ...whole, "current-context": "" }, "has no current-context"],
    ["unknown context", { ...whole, contexts: [] }, 'has no context "x"'],
    ["unknown cluster", { ...whole, clusters: [] }, 'has no cluster "c"'],
    ["unknown user", { ...whole, users: "none" }, 'has no user "u"'],
    ["no server", { ...whole, clusters: [{ name: "c", cluster: {} }] }, "has a cluster without a usable server address"],
    [
      "odd server",
      { ...whole, clusters: [{ name: "c", cluster: { server: "fd00::1" } }] },
      "has a cluster without a usable server address",
    ],
    ...["10.0.0.1:3128", "localhost:3128", "socks4://10.0.0.1:1080"].map(
      (url) =>
        [
          `a proxy at ${url}`,
          { ...whole, clusters: [{ name: "c", cluster: { server: "https://192.0.2.1", "proxy-url": url } }] },
          "has a cluster without a usable proxy-url",
        ] as const,
    ),
    ["no command", { ...whole, users: [{ name: "u", user: { exec: {} } }] }, "has an exec user without a command"],
  ];
  it.each(broken)("says what is wrong and where: %s", (_name, content, what) => {
    let thrown: unknown;
    try {
      parseKubeconfig([file(content)]);
    } catch (error) {
      thrown = error;
    }
    expect(ProxyError.is(thrown, "invalid_object")).toBe(true);
    expect(String(thrown)).toContain(`the kubeconfig ${what}: /etc/k/config: `);
  });

  it("says so when it is not YAML", () => {
    expect(() => parseKubeconfig([{ path: "/p", text: "a: [" }])).toThrow("[invalid_object] the kubeconfig is not YAML");
  });
});

/** As client-go v0.37.2 answers, without the trailing slash that a URL without a path has here. */
const TABLE: readonly (readonly [text: string, plain: string | undefined, tls?: string])[] = [
  ["10.0.0.1:6443", "http://10.0.0.1:6443", "https://10.0.0.1:6443"],
  ["10.0.0.1", "http://10.0.0.1", "https://10.0.0.1"],
  ["10.0.0.1:6443/", "http://10.0.0.1:6443", "https://10.0.0.1:6443"],
  ["api.example.com:6443", "http://api.example.com:6443", "https://api.example.com:6443"],
  ["localhost:6443", "http://localhost:6443", "https://localhost:6443"],
  ["localhost", "http://localhost", "https://localhost"],
  ["[fd00::1]:6443", "http://[fd00::1]:6443", "https://[fd00::1]:6443"],
  ["[fd00::1]", "http://[fd00::1]", "https://[fd00::1]"],
  ["HTTP://10.0.0.1:8080", "http://10.0.0.1:8080"],
  ["Https://10.0.0.1:6443/prefix/", "https://10.0.0.1:6443/prefix/"],
  ["https://[fd00::1]:6443", "https://[fd00::1]:6443"],
  ["10.0.0.1:6443/prefix", undefined],
  ["https:10.0.0.1", undefined],
  ["https:/10.0.0.1", undefined],
  ["unix:///run/api.sock", undefined],
  ["fd00::1", undefined],
  ["::1:6443", undefined],
  ["10.0.0.1:port", undefined],
  ["https://", undefined],
  ["", undefined],
  // client-go takes these, and fails at the first request.
  ["ftp://10.0.0.1", undefined],
  ["10.0.0.1:99999", undefined],
];

describe("an API server's address", () => {
  for (const [text, plain, tls = plain] of TABLE) {
    const read = (isTlsDefault: boolean): string | undefined => serverAddress(text, isTlsDefault)?.href.replace(/(:\/\/[^/]+)\/$/, "$1");
    it(`written as ${text}`, () => expect([read(false), read(true)]).toEqual([plain, tls]));
  }
});
