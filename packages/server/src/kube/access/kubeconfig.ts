import { delimiter, dirname, isAbsolute, resolve } from "node:path";
import { deepPositionOf, YAML_LEVELS_MAX } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import { parseDocument } from "yaml";
import { isRecord } from "../../source/raw-object.ts";
import { isUsableProxy } from "./proxy-rules.ts";

/** A cluster of a kubeconfig. */
export interface ClusterEntry {
  readonly server: URL;
  readonly caFile: string | undefined;
  /** PEM. */
  readonly caData: string | undefined;
  readonly isInsecure: boolean;
  readonly tlsServerName: string | undefined;
  readonly proxyUrl: URL | undefined;
}

/** A user of a kubeconfig. */
export interface UserEntry {
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  readonly certFile: string | undefined;
  readonly certData: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyData: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The user as written, when it logs in through a program (`exec`) or an `auth-provider`. */
  readonly plugin: Readonly<Record<string, unknown>> | undefined;
}

/** The cluster and the user of a kubeconfig's current context. */
export interface KubeconfigContext {
  readonly name: string;
  readonly cluster: ClusterEntry;
  readonly user: UserEntry;
}

/** One kubeconfig file. */
export interface KubeconfigFile {
  readonly path: string;
  readonly text: string;
}

/** Take `KUBECONFIG` apart: paths separated by `:`, empty ones skipped. */
export function kubeconfigPaths(value: string): readonly string[] {
  return value.split(delimiter).filter((path) => path !== "");
}

/**
 * Find the current context in one or more kubeconfigs.
 *
 * Shape: of entries with one name the first file's counts; relative paths are relative to their file. `master` takes the place of the server's address.
 * Edges: a context without a user gives an anonymous one. An address without a scheme is https where the kubeconfig has TLS material, else http.
 * @throws {ProxyError} `invalid_object` naming the file and the field.
 */
export function parseKubeconfig(files: readonly KubeconfigFile[], master?: string): KubeconfigContext {
  const parsed = files.map((file) => ({ ...file, content: parseFile(file) }));
  const path = files.map((file) => file.path).join(delimiter);
  const current = parsed.map(({ content }) => text(content["current-context"])).find((name) => name !== undefined);
  if (current === undefined) {
    throw broken(path, "has no current-context", "choose one with `kubectl config use-context`");
  }
  const find = (list: string, field: string, name: string): Found | undefined => {
    for (const { path: from, content } of parsed) {
      const entries: readonly unknown[] = Array.isArray(content[list]) ? content[list] : [];
      const entry = entries.find((candidate) => isRecord(candidate) && candidate["name"] === name);
      if (isRecord(entry) && isRecord(entry[field])) return { directory: dirname(resolve(from)), entry: entry[field] };
    }
    return undefined;
  };
  const context = find("contexts", "context", current);
  if (context === undefined) throw broken(path, `has no context "${current}"`, "correct current-context");
  const clusterName = text(context.entry["cluster"]) ?? "";
  const cluster = find("clusters", "cluster", clusterName);
  if (cluster === undefined) throw broken(path, `has no cluster "${clusterName}"`, `correct context "${current}"`);
  const userName = text(context.entry["user"]);
  const found = userName === undefined ? undefined : find("users", "user", userName);
  if (userName !== undefined && found === undefined) {
    throw broken(path, `has no user "${userName}"`, `correct context "${current}"`);
  }
  const user = userEntry(found ?? { directory: "", entry: {} }, path);
  const hasCertificate = user.certFile !== undefined || user.certData !== undefined;
  return { name: current, cluster: clusterEntry(cluster, path, { master, hasCertificate }), user };
}

interface Found {
  readonly directory: string;
  readonly entry: Readonly<Record<string, unknown>>;
}

function parseFile(file: KubeconfigFile): Readonly<Record<string, unknown>> {
  let content: unknown;
  try {
    // What yaml warns of would go to standard error, in many lines.
    const document = parseDocument(file.text, { logLevel: "error" });
    if (document.errors[0] !== undefined) throw document.errors[0];
    if (deepPositionOf(document) !== undefined) throw new Error(`it is nested deeper than ${YAML_LEVELS_MAX} levels`);
    content = document.toJS();
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "the kubeconfig is not YAML", { object: file.path });
  }
  if (!isRecord(content)) throw broken(file.path, "is empty or not a mapping", "give a kubeconfig");
  return content;
}

interface Around {
  readonly master: string | undefined;
  readonly hasCertificate: boolean;
}

function clusterEntry({ directory, entry }: Found, path: string, { master, hasCertificate }: Around): ClusterEntry {
  const caFile = filePath(directory, entry["certificate-authority"]);
  const caData = decoded(entry["certificate-authority-data"]);
  const isInsecure = entry["insecure-skip-tls-verify"] === true;
  const hasTls = caFile !== undefined || caData !== undefined || hasCertificate || isInsecure;
  const server = serverAddress(master ?? text(entry["server"]) ?? "", hasTls);
  if (server === undefined) {
    throw broken(path, "has a cluster without a usable server address", "write https://HOST:PORT");
  }
  const proxyText = text(entry["proxy-url"]);
  const proxyUrl = proxyText === undefined || !URL.canParse(proxyText) ? undefined : new URL(proxyText);
  if (proxyText !== undefined && (proxyUrl === undefined || !isUsableProxy(proxyUrl))) {
    throw broken(path, "has a cluster without a usable proxy-url", "write http://, https:// or socks5://HOST:PORT");
  }
  return {
    server,
    caFile,
    caData,
    isInsecure,
    tlsServerName: text(entry["tls-server-name"]),
    proxyUrl,
  };
}

function userEntry({ directory, entry }: Found, path: string): UserEntry {
  const isPlugin = isRecord(entry["exec"]) || isRecord(entry["auth-provider"]);
  if (isRecord(entry["exec"]) && text(entry["exec"]["command"]) === undefined) {
    throw broken(path, "has an exec user without a command", "name the login program");
  }
  return {
    token: text(entry["token"]),
    tokenFile: filePath(directory, entry["tokenFile"]),
    certFile: filePath(directory, entry["client-certificate"]),
    certData: decoded(entry["client-certificate-data"]),
    keyFile: filePath(directory, entry["client-key"]),
    keyData: decoded(entry["client-key-data"]),
    username: text(entry["username"]),
    password: text(entry["password"]),
    plugin: isPlugin ? withAbsoluteCommand(directory, entry) : undefined,
  };
}

function withAbsoluteCommand(directory: string, user: Found["entry"]): Found["entry"] {
  const { exec } = user;
  if (!isRecord(exec)) return user;
  const command = text(exec["command"]) ?? "";
  // As client-go: a bare name is looked up in PATH, a relative path starts at the kubeconfig.
  const isRelativePath = command.includes("/") && !isAbsolute(command);
  return { ...user, exec: { ...exec, command: isRelativePath ? resolve(directory, command) : command } };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function decoded(value: unknown): string | undefined {
  const data = text(value);
  return data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8");
}

function filePath(directory: string, value: unknown): string | undefined {
  const path = text(value);
  return path === undefined ? undefined : resolve(directory, path);
}

function broken(path: string, what: string, hint: string): ProxyError {
  return new ProxyError("invalid_object", `the kubeconfig ${what}`, { object: path, hint });
}

/**
 * Read an API server's address as client-go does: a URL, or `HOST`, `HOST:PORT` without a scheme.
 *
 * Edges: without a scheme there is no path; `isTlsDefault` chooses https then. An IPv6 address needs brackets. Undefined: not an address.
 * @source client-go v0.37.2 rest/url_utils.go DefaultServerURL
 */
export function serverAddress(address: string, isTlsDefault: boolean): URL | undefined {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(address);
  const whole = hasScheme ? address : `${isTlsDefault ? "https" : "http"}://${address}`;
  if (!URL.canParse(whole)) return undefined;
  const url = new URL(whole);
  if (!/^https?:$/.test(url.protocol) || (!hasScheme && url.pathname !== "/")) return undefined;
  return url;
}
