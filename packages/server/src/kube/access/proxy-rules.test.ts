import { describe, expect, it } from "vitest";
import { proxyAddress, proxyFromEnvironment } from "./proxy-rules.ts";

const PROXY = "http://proxy:3128";

/** Whether a server has the proxy, with this NO_PROXY. */
function isProxied(url: string, noProxy: string): boolean {
  return proxyFromEnvironment(new URL(url), { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, NO_PROXY: noProxy }) !== undefined;
}

/** Of golang.org/x/net/http/httpproxy's own tests. */
const GO_LIST =
  "foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64";

const GO_HOSTS: readonly (readonly [host: string, proxied: boolean])[] = [
  ["localhost", false],
  ["127.0.0.1", false],
  ["127.0.0.2", false],
  ["[::1]", false],
  ["[::2]", true],
  ["192.168.1.1", false],
  ["192.168.1.2", true],
  ["192.168.1.3", false],
  ["192.168.1.4", true],
  ["10.0.0.2", false],
  ["[2001:db8::52:0:1]", false],
  ["[2001:db8::52:0:2]", true],
  ["[2001:db8::52:0:3]", false],
  ["[2002:db8:a::123]", false],
  ["[fe80::424b:c8be:1643:a1b6]", true],
  ["barbaz.net", true],
  ["www.barbaz.net", false],
  ["foobar.com", false],
  ["www.foobar.com", false],
  ["foofoobar.com", true],
  ["baz.com", true],
  ["localhost.net", true],
  ["local.localhost", true],
  ["barbarbaz.net", true],
  ["wildcard.io", true],
  ["nested.wildcard.io", false],
  ["awildcard.io", true],
];

/** As Go 1.26 with httpproxy v0.57.0 answers. */
const MORE: readonly (readonly [noProxy: string, url: string, proxied: boolean])[] = [
  ["10.0.0.0/8,127.0.0.0/8,.svc", "https://10.96.0.1", false],
  ["10.0.0.0/8,127.0.0.0/8,.svc", "https://kubernetes.default.svc", false],
  [" 10.96.0.0/12 ", "https://10.96.0.1:443", false],
  ["10.0.0.1/32", "https://10.0.0.1:6443", false],
  ["0.0.0.0/0", "https://10.0.0.1", false],
  ["0.0.0.0/0", "https://[fd00::1]", true],
  ["::/0", "https://[fd00::1]", false],
  ["::/0", "https://10.0.0.1", true],
  ["10.0.0.0/33", "https://10.0.0.1", true],
  ["10.0.0.0/", "https://10.0.0.1", true],
  ["10.0.0.0/08", "https://10.0.0.1", false],
  ["10.0.0.1", "https://[::ffff:10.0.0.1]", false],
  ["", "https://[::ffff:127.0.0.1]", false],
  ["", "https://0.0.0.0", true],
  ["10.0.0.1:6443", "https://10.0.0.1:6443", false],
  ["10.0.0.1:6443", "https://10.0.0.1", true],
  ["10.0.0.1:443", "https://10.0.0.1", false],
  ["10.0.0.1:80", "http://10.0.0.1", false],
  ["10.0.0.1:", "https://10.0.0.1", false],
  ["fd00::1", "https://[fd00::1]:6443", false],
  ["[fd00::1]", "https://[fd00::1]:6443", true],
  ["[fd00::1]:6443", "https://[fd00::1]:6443", false],
  ["*", "https://10.0.0.1", false],
  ["10.1.1.1,*", "https://api.lab", false],
  ["**", "https://api.lab", true],
  ["EXAMPLE.com", "https://foo.example.COM", false],
  ["example.com:443", "https://foo.example.com", false],
  ["example.com:443", "https://foo.example.com:6443", true],
  [".示例.com", "http://www.示例.com", false],
  ["xn--fsq092h.com", "http://www.示例.com", false],
  ["示例.com", "http://www.xn--fsq092h.com", false],
  ["com", "https://example.com", false],
  ["10.0.0", "https://10.0.0.1", true],
  [":1", "https://example.com", true],
  [",,", "https://example.com", true],
  ["http://example.com", "https://example.com", true],
];

describe("which servers are reached without a proxy", () => {
  it.each(GO_HOSTS)("by Go's own table: %s", (host, proxied) => {
    expect(isProxied(`http://${host}`, GO_LIST)).toBe(proxied);
    expect(isProxied(`http://${host}`, "*")).toBe(false);
  });

  it.each(MORE)("NO_PROXY=%s, %s", (noProxy, url, proxied) => {
    expect(isProxied(url, noProxy)).toBe(proxied);
  });
});

describe("which variable counts", () => {
  const server = new URL("https://api.lab");
  const chosen = (env: Readonly<Record<string, string>>, url = server): string | undefined => proxyFromEnvironment(url, env)?.host;

  it("goes by the server's scheme", () => {
    const env = { HTTP_PROXY: "http://plain:1", HTTPS_PROXY: "http://tls:1" };
    expect([chosen(env), chosen(env, new URL("http://api.lab"))]).toEqual(["tls:1", "plain:1"]);
    expect(chosen({ HTTP_PROXY: "http://plain:1" })).toBeUndefined();
    expect(chosen({})).toBeUndefined();
  });

  it("is the one in lower case where the other is absent or empty", () => {
    expect(chosen({ https_proxy: "http://lower:1" })).toBe("lower:1");
    expect(chosen({ HTTPS_PROXY: "", https_proxy: "http://lower:1" })).toBe("lower:1");
    expect(chosen({ HTTPS_PROXY: "http://upper:1", https_proxy: "http://lower:1" })).toBe("upper:1");
    expect(chosen({ https_proxy: "http://lower:1", no_proxy: ".lab" })).toBeUndefined();
  });

  it("must name a proxy of a known kind, unless the proxy is not needed", () => {
    expect(() => chosen({ HTTPS_PROXY: "socks4://old:1080" })).toThrow("HTTPS_PROXY names a proxy of an unknown kind: socks4://old:1080");
    expect(chosen({ HTTPS_PROXY: "socks4://old:1080", NO_PROXY: "api.lab" })).toBeUndefined();
  });
});

describe("a proxy's address", () => {
  const addresses: readonly (readonly [text: string, href: string | undefined])[] = [
    ["proxy:3128", "http://proxy:3128/"],
    ["proxy", "http://proxy/"],
    ["10.1.1.1:8080", "http://10.1.1.1:8080/"],
    ["[fd00::9]:3128", "http://[fd00::9]:3128/"],
    ["localhost:3128", "http://localhost:3128/"],
    ["user:secret@proxy:3128", "http://user:secret@proxy:3128/"],
    ["HTTP://Proxy:3128", "http://proxy:3128/"],
    ["https://proxy", "https://proxy/"],
    ["socks5://proxy:1080", "socks5://proxy:1080"],
    ["http://user:%zz@proxy", undefined],
    ["http://", undefined],
    ["a proxy", undefined],
    ["", undefined],
  ];
  it.each(addresses)("%s", (text, href) => {
    expect(proxyAddress(text)?.href).toBe(href);
  });
});
