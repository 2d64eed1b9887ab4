import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { imageNft } from "@turnout/house/images";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TURNOUT = fileURLToPath(new URL("../packages/cli/bin/turnout", import.meta.url));
const NEWER = imageNft("root", "netns", "ip", "nft");
/** What an nft before 1.1 can't read, as another program has it. */
const MAP = `table inet other {
  map by-device { type ifname : verdict; elements = { "lo" : accept }; }
  chain forward { type filter hook forward priority 0; iifname vmap @by-device; }
}`;
const KUBE_PROXY = `table ip kube-proxy {
  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
  chain services { ip daddr . meta l4proto . th dport vmap @service-ips; }
}`;
const [CART, STICKY] = ["10.96.0.20", "10.96.0.21"] as const;
const CRASH = /nft [\d.]+ crashes on this host \(SIGSEGV\): .*install nft 1\.1 or newer/;

function service(name: string, clusterIP: string, affinity: "None" | "ClientIP"): readonly object[] {
  const metadata = { name, namespace: "shop", labels: { "kubernetes.io/service-name": name } };
  return [
    { apiVersion: "v1", kind: "Service", metadata, spec: { clusterIP, sessionAffinity: affinity, ports: [{ name: "http", port: 80 }] } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata,
      addressType: "IPv4",
      ports: [{ name: "http", port: 8080 }],
      endpoints: [{ addresses: ["10.1.1.5"] }, { addresses: ["10.1.2.5"] }],
    },
  ];
}

/** A host with an nft of its own, next to what a newer one has made. */
class Host {
  readonly #name: string;
  readonly #path: string;
  readonly #files = mkdtempSync(join(tmpdir(), "turnout-newer-nft-"));
  readonly #daemons: ChildProcess[] = [];
  log = "";

  constructor(name: string, path: string) {
    this.#name = `${name}-${process.pid}`;
    this.#path = path;
    execFileSync("ip", ["netns", "add", this.#name]);
    execFileSync("ip", ["-n", this.#name, "link", "set", "lo", "up"]);
    this.write("cart", service("cart", CART, "None"));
  }

  write(name: string, objects: readonly object[]): void {
    writeFileSync(join(this.#files, `${name}.yaml`), objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  }

  /** The newer nft runs a transaction. */
  newer(input: string): void {
    execFileSync("ip", ["netns", "exec", this.#name, join(NEWER.folder, "nft"), "-f", "-"], { input });
  }

  async has(...what: readonly string[]): Promise<boolean> {
    const [code] = (await once(this.#start(join(NEWER.folder, "nft"), what, this.#path), "close")) as [number];
    return code === 0;
  }

  /** Whether a Service is served, soon. */
  async serves(ip: string): Promise<boolean> {
    for (let tries = 0; tries < 100; tries++) {
      if (await this.has("get", "element", "ip", "turnout", "services", `{ ${ip} . tcp . 80 }`)) return true;
      await sleep(100);
    }
    return false;
  }

  /** Run the command to its end; resolves to its exit code, and what it wrote. */
  async turnout(args: readonly string[], path = this.#path): Promise<readonly [code: number, text: string]> {
    const child = this.#start(TURNOUT, args, path);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const [code] = (await once(child, "close")) as [number];
    return [code, text];
  }

  once(path = this.#path): Promise<readonly [code: number, text: string]> {
    return this.turnout([...this.run, "--once"], path);
  }

  get run(): readonly string[] {
    return ["run", "--backend", "nft", ...this.source, "--oom-score-adj", "0"];
  }

  get source(): readonly string[] {
    return ["--source", `file:${this.#files}`, "--node-name", "n1"];
  }

  /** Start the proxy that stays. */
  start(): void {
    const unset = [
      "--conntrack-max-per-core",
      "0",
      "--conntrack-tcp-timeout-established",
      "0s",
      "--conntrack-tcp-timeout-close-wait",
      "0s",
    ];
    const child = this.#start(TURNOUT, [...this.run, ...unset], this.#path);
    child.stderr?.on("data", (chunk: Buffer) => (this.log += chunk.toString()));
    this.#daemons.push(child);
  }

  async remove(): Promise<void> {
    for (const daemon of this.#daemons) {
      const ended = once(daemon, "close");
      daemon.kill("SIGKILL");
      await ended;
    }
    execFileSync("ip", ["netns", "del", this.#name]);
    rmSync(this.#files, { recursive: true });
  }

  #start(file: string, args: readonly string[], path: string): ChildProcess {
    return spawn("ip", ["netns", "exec", this.#name, file, ...args], {
      env: { ...process.env, PATH: path },
      stdio: ["ignore", "pipe", "pipe"],
    });
  }
}

const OWN_PATH = process.env["PATH"] ?? "";
const IMAGE_PATH = `${NEWER.folder}:${OWN_PATH}`;

describe.each([
  ["this host's nft", OWN_PATH],
  ["the nft of the images", IMAGE_PATH],
])("next to maps that a newer nft made, with %s", NEWER.needs, (which, path) => {
  const hosts: Host[] = [];
  const hostOf = (name: string): Host => {
    const host = new Host(`skew-${name}-${which === "this host's nft" ? "own" : "new"}`, path);
    hosts.push(host);
    return host;
  };
  const version = (): string => execFileSync("nft", ["--version"], { env: { ...process.env, PATH: path }, encoding: "utf8" });
  const isOld = NEWER.folder !== "" && /v1\.0\./.test(version());
  afterAll(() => Promise.all(hosts.map((host) => host.remove())));

  it.concurrent("a first start writes its rules, and a cleanup removes them", async () => {
    const host = hostOf("first");
    host.newer(MAP);
    const [code, log] = await host.once();
    expect([code, CRASH.test(log)]).toEqual([0, isOld]);
    expect(await host.serves(CART)).toBe(true);
    expect(await host.turnout(["cleanup", "--backend", "nft"])).toEqual([0, expect.any(String)]);
    expect(await host.has("list", "table", "ip", "turnout")).toBe(false);
  });

  it.concurrent("a running proxy makes new chains, and its table anew", async () => {
    const host = hostOf("daemon");
    host.start();
    expect(await host.serves(CART)).toBe(true);
    host.newer(MAP);
    host.write("sticky", service("sticky", STICKY, "ClientIP"));
    expect(await host.serves(STICKY)).toBe(true);
    host.newer("delete table ip turnout");
    expect(await host.serves(STICKY)).toBe(true);
    expect(CRASH.test(host.log)).toBe(isOld);
  });

  it.concurrent(
    "a table that is its own, but of a newer nft, is adopted; what can't be changed in it is reported; it is removed",
    async () => {
      const host = hostOf("own");
      expect(await host.once(IMAGE_PATH)).toEqual([0, expect.any(String)]);
      expect(await host.once()).toEqual([0, expect.any(String)]);
      host.write("sticky", service("sticky", STICKY, "ClientIP"));
      const [code, log] = await host.once();
      expect([code === 0, CRASH.test(log)]).toEqual([!isOld, isOld]);
      expect(await host.turnout(["cleanup", "--backend", "nft"])).toEqual([0, expect.any(String)]);
      expect(await host.has("list", "table", "ip", "turnout")).toBe(false);
    },
  );

  it.concurrent("kube-proxy's table is taken over from", async () => {
    const host = hostOf("proxy");
    host.newer(KUBE_PROXY);
    expect(await host.once()).toEqual([0, expect.any(String)]);
    expect(await host.serves(CART)).toBe(true);
    expect(await host.has("list", "table", "ip", "kube-proxy")).toBe(false);
  });

  it.concurrent("doctor reports an nft that crashes, and why what it could not look at", async () => {
    const host = hostOf("report");
    host.newer(MAP);
    await host.once();
    const [, report] = await host.turnout(["doctor"]);
    expect(CRASH.test(report)).toBe(isOld);
    expect(/rules of table inet other: .*Error: nft crashed \(SIGSEGV\)/.test(report)).toBe(isOld);
    const [, why] = await host.turnout(["why", "10.1.1.3", `${CART}:80`, "--backend", "nft", ...host.source]);
    expect(why.replaceAll(/\s+/g, " ")).toContain("Turnout's rules for this are in the kernel, complete");
    expect(why.replaceAll(/\s+/g, " ").includes("list table inet other failed: Error: nft crashed (SIGSEGV)")).toBe(isOld);
  });
});

describe("an nft that fails", needs("root", "netns", "ip", "nft"), () => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-failing-nft-"));
  let host: Host;
  beforeAll(() => {
    host = new Host("skew-failing", `${folder}:${OWN_PATH}`);
  });
  afterAll(async () => {
    await host?.remove();
    rmSync(folder, { recursive: true });
  });

  /** A transaction fails while `condition` of the shell is true; all else is nft's. */
  function nftFailsWhile(condition: string): void {
    const real = execFileSync("sh", ["-c", "command -v nft"], { encoding: "utf8" }).trim();
    const failing = `echo "Error: Could not process rule: Cannot allocate memory" >&2; exit 1`;
    writeFileSync(join(folder, "nft"), `#!/bin/sh\nif [ "$1" = -f ] && ${condition}; then ${failing}; fi\nexec ${real} "$@"\n`, {
      mode: 0o755,
    });
  }

  it("is tried again by run --once as long as --timeout allows, and then what it said last is the error", async () => {
    nftFailsWhile("true");
    const [code, log] = await host.turnout([...host.run, "--once", "--timeout", "2s"]);
    expect([code, log]).toEqual([
      1,
      expect.stringMatching(/not done within 2 s: \[tool_failed\] nft could not apply a transaction: .*Cannot allocate memory/),
    ]);
  });

  it("is no failure of run --once where it recovers in time", async () => {
    nftFailsWhile(`{ mkdir "${folder}/one" || mkdir "${folder}/two" || mkdir "${folder}/three"; } 2>/dev/null`);
    const [code, log] = await host.once();
    expect([code, log]).toEqual([0, expect.stringContaining("Cannot allocate memory")]);
  });
});
