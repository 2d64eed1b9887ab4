import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createApiServer } from "@turnout/lab";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ToyEnvironment } from "./test-support/toy-environment.ts";

const COMMAND = fileURLToPath(new URL("../bin/turnout", import.meta.url));
const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
const NODE = {
  kind: "Node",
  apiVersion: "v1",
  metadata: { name: "node1" },
  status: { addresses: [{ type: "InternalIP", address: "192.0.2.10" }] },
};
const SERVICE = {
  kind: "Service",
  apiVersion: "v1",
  metadata: { namespace: "shop", name: "cart" },
  spec: { clusterIP: "10.96.0.10", externalIPs: ["198.51.100.7"], ports: [{ port: 80 }] },
};

let env: ToyEnvironment;
let file: readonly string[];

beforeEach(async () => {
  env = await ToyEnvironment.create();
  const objects = await env.file("objects.json", JSON.stringify({ kind: "List", apiVersion: "v1", items: [NODE, SERVICE] }));
  file = ["--source", `file:${objects}`, "--node-name", "node1", "--family", "IPv4"];
});

afterEach(() => env.remove());

/** Run the real command: what it reads of this host, it only reads. */
function turnout(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    execFile(COMMAND, args, (error, out, err) => resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err }));
  });
}

describe("a configuration of kube-proxy 1.37", () => {
  test.each([
    ["mode: nftables\nfeatureGates: {NFTablesNetlink: false}\n", /accepted, but without effect here: featureGates \(NFTablesNetlink\)/],
    ["mode: nftables\nfeatureGates: {KubeProxyNFTablesLocalhostNodePorts: true}\nnodePortAddresses: [primary, localhost]\n", /^$/],
    ["mode: ipvs\nfeatureGates: {KubeProxyIPVS: true}\n", /^$/],
    ["mode: nftables\nfeatureGates: {KMSv2: true}\n", /featureGates \(KMSv2: kube-proxy 1.31 was the last with it\)/],
  ])("is taken: %s", async (body, warning) => {
    const config = await env.file("config.yaml", HEAD + body);
    const { code, err, out } = await turnout("render", ...file, "--config", config);
    expect(code).toBe(0);
    expect(err).toMatch(warning);
    expect(out).toContain("10.96.0.10");
  });
});

describe("R-70 AllowServiceExternalIPs", () => {
  const gate = (isOn: boolean): readonly string[] => ["--feature-gates", `AllowServiceExternalIPs=${isOn}`];

  test.each<readonly [name: string, flags: readonly string[], isServed: boolean]>([
    ["on by default", [], true],
    ["off", gate(false), false],
    ["off, but a flag allows the address", [...gate(false), "--allowed-external-ip-cidrs", "198.51.100.0/24"], true],
  ])("of files: %s", async (_name, flags, isServed) => {
    const { code, out } = await env.run("print", ...file, ...flags);
    expect(code).toBe(0);
    expect(out.includes("198.51.100.7")).toBe(isServed);
  });

  test.each<readonly [version: string, flags: readonly string[], isServed: boolean]>([
    ["v1.37.2", [], true],
    ["v1.40.0", [], false],
    ["v1.40.0", gate(true), true],
    ["v1.40.0", ["--allowed-external-ip-cidrs", "198.51.100.0/24"], true],
    ["v1.37.2", gate(false), false],
  ])("of a cluster of %s with %j", async (version, flags, isServed) => {
    const api = await createApiServer({ version });
    onTestFinished(() => api.close());
    for (const object of [NODE, SERVICE]) api.apply(object);
    const kubeconfig = await env.file("kubeconfig", api.kubeconfig());
    const { code, out, err } = await env.run("print", "--kubeconfig", kubeconfig, "--node-name", "node1", "--family", "IPv4", ...flags);
    expect(code).toBe(0);
    expect(out.includes("198.51.100.7")).toBe(isServed);
    expect(err.includes("externalIPs of Services are not served, as by kube-proxy of this cluster's version")).toBe(
      version === "v1.40.0" && flags.length === 0,
    );
  });
});
