import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createAuthority, createProcess, kubeconfigFor, RANGES } from "@turnout/lab";
import type { Place } from "@turnout/lab";
import { ApiClient } from "./api-client.ts";
import { until } from "./until.ts";

/** Paths of the real programs. */
export interface Programs {
  readonly apiserver: string;
  readonly etcd: string;
}

/** A real API server with its store, at one place. */
export interface ControlPlane {
  /** As an administrator. */
  readonly api: ApiClient;
  /** Write a kubeconfig for a user, who may have a group, with a client certificate; returns its path. */
  kubeconfig(user: string, group?: string): Promise<string>;
  /** A file of the control plane, such as `ca.crt`. */
  file(name: string): string;
  /** Where the API server writes what it was asked. */
  readonly auditLog: string;
  /** Kill the API server, as nothing it can prepare for. */
  kill(): Promise<void>;
  /** Start the API server again; resolves when it is ready. */
  start(): Promise<void>;
  /** When it was not ready, though something may have been answered: an API server that has just started forbids what it will allow in a moment. */
  readonly unready: readonly Span[];
  /** Have the store forget every revision before the present one; gives that. */
  compact(): Promise<string>;
}

/** What a control plane has that differs from the usual one. */
export interface PlaneOptions {
  /** Further names and addresses at which clients find the API server. */
  readonly hosts?: readonly string[];
  /** Flags of the API server, instead of usual ones or beside them; undefined: without this one. */
  readonly flags?: Flags;
}

/** In ms since the epoch. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

const PORT = 6443;
const ETCD = "http://127.0.0.1:2379";
const ADMIN_TOKEN = "the-administrator";
const READY_MS = 120_000;

/** Values of flags by name; undefined: the flag is not given. */
export type Flags = Readonly<Record<string, string | number | boolean | undefined>>;

/** Start etcd and kube-apiserver. @throws {Error} when they don't come up, with what they wrote last. */
export async function startControlPlane(
  place: Place,
  folder: string,
  programs: Programs,
  { hosts = [], flags = {} }: PlaneOptions = {},
): Promise<ControlPlane> {
  const host = place.address("IPv4");
  const authority = createAuthority("kubernetes", Date.now());
  const file = (name: string): string => join(folder, name);
  await mkdir(folder, { recursive: true });
  const server = authority.issue({ commonName: "kube-apiserver", hosts: [host, "127.0.0.1", "kubernetes", ...hosts] });
  const account = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await Promise.all(
    Object.entries({
      "ca.crt": authority.cert,
      "server.crt": server.cert,
      "server.key": server.key,
      "sa.key": account.privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
      "sa.pub": account.publicKey.export({ type: "spki", format: "pem" }).toString(),
      "tokens.csv": `${ADMIN_TOKEN},admin,admin,system:masters\n`,
      "audit.yaml": JSON.stringify({
        apiVersion: "audit.k8s.io/v1",
        kind: "Policy",
        omitStages: ["RequestReceived"],
        rules: [{ level: "Metadata" }],
      }),
    }).map(async ([name, text]) => await writeFile(file(name), text, { mode: 0o600 })),
  );
  const etcd = createProcess(place);
  etcd.start(programs.etcd, etcdFlags(file("etcd")));
  const apiserver = createProcess(place);
  const api = new ApiClient(place, { server: `https://${host}:${PORT}`, ca: file("ca.crt"), token: ADMIN_TOKEN });
  const ready = async (): Promise<void> => {
    await until("the API server is ready", READY_MS, async () => {
      if (!apiserver.isRunning || !etcd.isRunning) throw new Error(`it ended: ${etcd.log().slice(-500)} ${apiserver.log().slice(-1_500)}`);
      return (await api.tryAsk({ method: "GET", path: "/readyz" }))?.status === 200;
    });
  };
  apiserver.start(programs.apiserver, flagsOf({ ...apiserverFlags(host, file), ...flags }));
  await ready();
  const unready: Span[] = [];
  return {
    api,
    unready,
    auditLog: file("audit.log"),
    file,
    kubeconfig: async (user, group) => {
      const { cert, key } = authority.issue({ commonName: user, ...(group === undefined ? {} : { organization: group }) });
      const path = file(`${user.replaceAll(":", "-")}.conf`);
      const parts = { server: `https://${host}:${PORT}`, ca: authority.cert, clientCertificate: { cert, key } };
      await writeFile(path, kubeconfigFor(parts), { mode: 0o600 });
      return path;
    },
    kill: async () => void (await apiserver.end("SIGKILL")),
    start: async () => {
      const fromMs = Date.now();
      apiserver.again();
      await ready();
      unready.push({ fromMs, toMs: Date.now() });
    },
    compact: async () => {
      // Any question tells the revision.
      const asked = await post(place, "kv/range", { key: btoa("\0") });
      const { header } = JSON.parse(asked) as { header: { revision: string } };
      await post(place, "kv/compaction", { revision: header.revision, physical: true });
      return header.revision;
    },
  };
}

function etcdFlags(folder: string): readonly string[] {
  return flagsOf({
    "data-dir": folder,
    "listen-client-urls": ETCD,
    "advertise-client-urls": ETCD,
    "listen-peer-urls": "http://127.0.0.1:2380",
    // Nothing of this outlives the run.
    "unsafe-no-fsync": true,
    "log-level": "warn",
  });
}

/** As a command line has them. */
export function flagsOf(flags: Flags): readonly string[] {
  return Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

function apiserverFlags(host: string, file: (name: string) => string): Flags {
  return {
    "etcd-servers": ETCD,
    "bind-address": host,
    "advertise-address": host,
    "secure-port": PORT,
    "tls-cert-file": file("server.crt"),
    "tls-private-key-file": file("server.key"),
    "client-ca-file": file("ca.crt"),
    "token-auth-file": file("tokens.csv"),
    "authorization-mode": "RBAC",
    "service-cluster-ip-range": `${RANGES.services.IPv4},${RANGES.services.IPv6}`,
    "service-account-key-file": file("sa.pub"),
    "service-account-signing-key-file": file("sa.key"),
    "service-account-issuer": "https://kubernetes.default.svc",
    "audit-policy-file": file("audit.yaml"),
    "audit-log-path": file("audit.log"),
    // Written as it happens: the log is read meanwhile.
    "audit-log-mode": "blocking-strict",
  };
}

async function post(place: Place, path: string, body: unknown): Promise<string> {
  const { stdout } = await place.run("curl", ["-sSf", "-d", JSON.stringify(body), `${ETCD}/v3/${path}`]);
  return stdout;
}
