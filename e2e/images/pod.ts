/** A container of a pod, as far as it is played here. */
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext: {
    readonly privileged?: boolean;
    readonly runAsUser: number;
    readonly capabilities?: { readonly add?: readonly string[] };
    readonly allowPrivilegeEscalation?: boolean;
  };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

/** A pod's template. */
export interface Pod {
  readonly hostPID?: boolean;
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: { readonly fsGroup?: number };
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
}

/** What the image says of a container's start. */
export interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Env: readonly string[];
}

/** Where a container runs. */
export interface Stage {
  /** The files of its image. */
  readonly root: string;
  /** Its network namespace, by path: the pods of a service proxy have their node's. */
  readonly network: string;
  readonly nodeName: string;
  /** What is mounted, by the volume's name. */
  readonly volumes: Readonly<Record<string, string>>;
  /** Capabilities of privileged containers. */
  readonly privileges: readonly string[];
  /** Appended to the container's own. */
  readonly moreArgs: readonly string[];
}

/** Capabilities that the proxy can use, by number. @source linux/capability.h */
const NUMBERS: Readonly<Record<string, number>> = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  KILL: 5,
  NET_BIND_SERVICE: 10,
  NET_ADMIN: 12,
  NET_RAW: 13,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  SYS_RESOURCE: 24,
  PERFMON: 38,
  BPF: 39,
};

/** Name what a privileged container can have here, by the bounding set of /proc/self/status. Pure. */
export function privilegesIn(status: string): readonly string[] {
  const bounding = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`);
  return Object.keys(NUMBERS).filter((name) => (bounding >> BigInt(NUMBERS[name] ?? 0)) & 1n);
}

/** Write capabilities as /proc has them. Pure. @throws {Error} for one that no manifest of ours has. */
export function maskOf(names: readonly string[]): string {
  const bits = names.map((name) => {
    const number = NUMBERS[name];
    if (number === undefined) throw new Error(`capability ${name} has no number here`);
    return 1n << BigInt(number);
  });
  return bits
    .reduce((mask, bit) => mask | bit, 0n)
    .toString(16)
    .padStart(16, "0");
}

function capabilitiesOf({ securityContext: { privileged, capabilities, runAsUser } }: Container, { privileges }: Stage): object {
  const names = (privileged === true ? privileges : (capabilities?.add ?? [])).map((name) => `CAP_${name}`);
  // A user other than root gets none by being allowed some.
  const held = runAsUser === 0 ? names : [];
  return { bounding: names, permitted: held, effective: held };
}

function mountsOf({ securityContext, volumeMounts }: Container, { volumes }: Stage): readonly object[] {
  const access = securityContext.privileged === true ? "rw" : "ro";
  return [
    { destination: "/proc", type: "proc", source: "proc" },
    { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"] },
    { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", access] },
    ...volumeMounts.map(({ name, mountPath, readOnly }) => {
      const source = volumes[name];
      if (source === undefined) throw new Error(`there is no volume ${name}`);
      return { destination: mountPath, type: "bind", source, options: ["rbind", readOnly === true ? "ro" : "rw"] };
    }),
  ];
}

/**
 * Say what the OCI runtime is to start, as a kubelet and containerd would. Pure.
 *
 * Edges: `$(NODE_NAME)` and other variables of the container are filled into its arguments; the server of the central layout is on this node. There is no seccomp profile, and no cgroup of its own.
 * @throws {Error} for a volume that the stage does not have.
 * @source OCI runtime-spec 1.0
 */
export function runtimeConfig(pod: Pod, container: Container, image: ImageConfig, stage: Stage): object {
  const { securityContext } = container;
  const values = new Map(
    (container.env ?? []).map(({ name, value }) => [name, value?.replace("turnout-server.internal", "127.0.0.1") ?? stage.nodeName]),
  );
  const args = [...container.args, ...stage.moreArgs].map((arg) =>
    arg.replace(/\$\((\w+)\)/g, (text, name: string) => values.get(name) ?? text),
  );
  const isPrivileged = securityContext.privileged === true;
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: {
        uid: securityContext.runAsUser,
        gid: securityContext.runAsUser,
        additionalGids: pod.securityContext?.fsGroup === undefined ? [] : [pod.securityContext.fsGroup],
      },
      args: [...image.Entrypoint, ...args],
      env: [...image.Env, ...[...values].map(([name, value]) => `${name}=${value}`)],
      cwd: "/",
      capabilities: capabilitiesOf(container, stage),
      noNewPrivileges: securityContext.allowPrivilegeEscalation === false,
    },
    root: { path: stage.root, readonly: true },
    mounts: mountsOf(container, stage),
    linux: {
      namespaces: [
        { type: "network", path: stage.network },
        { type: "mount" },
        { type: "ipc" },
        { type: "uts" },
        ...(pod.hostPID === true ? [] : [{ type: "pid" }]),
      ],
      ...(isPrivileged ? {} : { readonlyPaths: ["/proc/sys"], maskedPaths: ["/proc/kcore"] }),
    },
  };
}
