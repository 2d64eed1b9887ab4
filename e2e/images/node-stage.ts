import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthority } from "@turnout/lab";

/** This node's name in the manifests of the stage, `objects.yaml`. */
export const NODE_NAME = "node1";
/** The cluster IP of the Service that a proxy has to make work. */
export const CLUSTER_IP = "10.96.0.20";
const ENDPOINT = "10.1.1.5";
const NODE_IP = "192.0.2.1";

/** A node to play pods on: a network namespace with an address, an endpoint and a default route, and what pods mount. */
export interface NodeStage {
  /** Its network namespace, by path and by name. */
  readonly network: string;
  readonly namespace: string;
  /** By the volume's name in our manifests; the folder of the objects is not one of these. */
  readonly volumes: Readonly<Record<string, string>>;
  /** The file of objects in a container that mounts the ConfigMap. */
  readonly source: string;
  /** Removes the network namespace and the mounts. */
  remove(): void;
}

function makeVolumes(folder: string): Readonly<Record<string, string>> {
  const names = ["kube-proxy", "socket", "token", "server-ca", "certificate", "node-certificate", "bpffs", "cgroup"];
  const volumes = Object.fromEntries(names.map((name) => [name, join(folder, name)]));
  for (const place of Object.values(volumes)) mkdirSync(place);
  const write = (volume: string, name: string, text: string): void => writeFileSync(join(folder, volume, name), text);
  copyFileSync(new URL("config.yaml", import.meta.url), join(folder, "kube-proxy", "config.conf"));
  copyFileSync(new URL("objects.yaml", import.meta.url), join(folder, "kube-proxy", "objects.yaml"));
  const authority = createAuthority("cluster", Date.now());
  const server = authority.issue({ commonName: "turnout-server", hosts: ["127.0.0.1"] });
  const kubelet = authority.issue({ commonName: `system:node:${NODE_NAME}` });
  for (const volume of ["server-ca", "certificate", "token"]) write(volume, "ca.crt", authority.cert);
  write("certificate", "tls.crt", server.cert);
  write("certificate", "tls.key", server.key);
  write("node-certificate", "kubelet-client-current.pem", `${kubelet.cert}${kubelet.key}`);
  // As the kubelet has it: root's alone.
  chmodSync(join(folder, "node-certificate", "kubelet-client-current.pem"), 0o600);
  // As fsGroup has it.
  chownSync(join(folder, "certificate", "tls.key"), 0, 65_532);
  chmodSync(join(folder, "certificate", "tls.key"), 0o440);
  chownSync(join(folder, "socket"), 0, 65_532);
  chmodSync(join(folder, "socket"), 0o2777);
  writeFileSync(join(folder, "xtables.lock"), "");
  return { ...volumes, "xtables-lock": join(folder, "xtables.lock") };
}

/** Make the node. @throws {Error} what ip and mount say; what was made is removed then. */
export function createNodeStage(folder: string, name: string): NodeStage {
  const run = (...[file = "", ...args]: readonly string[]): void =>
    void execFileSync(file, args, { stdio: ["ignore", "ignore", "inherit"] });
  const volumes = makeVolumes(folder);
  const cgroup = join(existsSync("/sys/fs/cgroup/unified") ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup", name);
  const undo: (() => void)[] = [];
  const remove = (): void => {
    for (const step of undo.splice(0).toReversed()) step();
  };
  try {
    run("ip", "netns", "add", name);
    undo.push(() => run("ip", "netns", "del", name));
    const inside = (...command: readonly string[]): void => run("ip", "netns", "exec", name, ...command);
    inside("ip", "link", "set", "lo", "up");
    inside("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "wire0");
    for (const device of ["wire0", "eth0"]) inside("ip", "link", "set", device, "up");
    for (const address of [`${NODE_IP}/24`, `${ENDPOINT}/32`]) inside("ip", "address", "add", address, "dev", "eth0");
    inside("ip", "route", "add", "default", "dev", "eth0");
    run("mount", "-t", "bpf", "bpf", volumes["bpffs"] ?? "");
    undo.push(() => run("umount", volumes["bpffs"] ?? ""));
    // The eBPF backend serves the cgroup that it is given: here one of the stage's clients alone.
    mkdirSync(cgroup);
    undo.push(() => run("rmdir", cgroup));
  } catch (error) {
    remove();
    throw error;
  }
  return {
    network: `/run/netns/${name}`,
    namespace: name,
    volumes: { ...volumes, cgroup },
    source: "file:/var/lib/kube-proxy/objects.yaml",
    remove,
  };
}
