import { deflateSync } from "node:zlib";
import { DEFAULT_SETTINGS, FAMILIES, isEqual, ProxyError, type IPFamily, type ServicePort } from "@turnout/core";
import type { FuzzTarget } from "@turnout/house/fuzz";
import { parseApiTarget, parseTarget } from "../api/watch/target.ts";
import { DeliveryReader } from "../api/wire/change-set-codec.ts";
import { loadConfig } from "../daemon/config/loaded-config.ts";
import { runConfig } from "../daemon/config/run-config.ts";
import { parseBindAddress } from "../daemon/config/bind-address.ts";
import { parseDuration } from "../daemon/config/duration.ts";
import { ChangeSet, WatchResponse } from "../gen/turnout/node/v1/node.ts";
import { proxyFlags } from "./proxy-flags.ts";

const BACKENDS = ["nftables", "iptables", "ipvs", "kernelspace", ""].map((proxyMode) => ({ name: "any", proxyMode }));

/** Names of objects, addresses, words of the model. */
const HARMLESS = /^[A-Za-z0-9]?[-A-Za-z0-9._:/[\]]*$/;

/** A message, or the generated code's refusal: the stream ends with it (node-stream.ts). */
function decoded<T>(codec: { decode(bytes: Uint8Array): T }, bytes: Buffer): T {
  try {
    return codec.decode(bytes);
  } catch (error) {
    throw ProxyError.from(error, "feed_lost", "what the other side sent is no message of the node-state API");
  }
}

function readChangeSet(input: Buffer): void {
  const { response } = decoded(WatchResponse, input);
  if (response?.$case !== "changeSet") return;
  const { set, ...rest } = response.value;
  const rows = { ...response.value, packed: [], more: false };
  // The same rows once more, as they come when they are packed.
  const zlib = deflateSync(ChangeSet.encode({ ...ChangeSet.decode(new Uint8Array()), set }).finish());
  const packed = { ...rest, set: [], packed: [{ rows: set.length, zlib }], more: false };
  for (const family of FAMILIES) {
    checkTexts(new DeliveryReader(family, DEFAULT_SETTINGS).receive(response.value)?.changes.set);
    const [plain, unpacked] = [rows, packed].map((one) => rowsOrRefused(family, one));
    if (!isEqual(plain, unpacked)) throw new Error(`packed rows are read otherwise than plain ones: ${JSON.stringify([plain, unpacked])}`);
  }
}

/** The rows of a change set; undefined where it is refused. */
function rowsOrRefused(family: IPFamily, changeSet: ChangeSet): readonly ServicePort[] | undefined {
  try {
    return new DeliveryReader(family, DEFAULT_SETTINGS).receive(changeSet)?.changes.set;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    return undefined;
  }
}

/** Rows end in rules, so nothing that the other side chose freely is in them. */
function checkTexts(value: unknown): void {
  if (typeof value === "string" && !HARMLESS.test(value))
    throw new Error(`a text that is not harmless is in a row: ${JSON.stringify(value)}`);
  if (typeof value === "object" && value !== null) for (const part of Object.values(value)) checkTexts(part);
}

function readConfigFile(input: Buffer): void {
  const file = { path: "config.conf", text: input.toString("utf8") };
  const loaded = loadConfig({ flags: {}, file, hostname: "node1" });
  for (const backend of BACKENDS) runConfig(loaded, backend);
}

/** One argument a line. */
function readFlags(input: Buffer): void {
  const loaded = loadConfig({ flags: proxyFlags(input.toString("utf8").split("\n")), file: undefined, hostname: "node1" });
  for (const backend of BACKENDS) runConfig(loaded, backend);
}

/** Each line as whatever a single value can be. */
function readValues(input: Buffer): void {
  for (const line of input.toString("utf8").split("\n")) {
    const readers: readonly ((text: string) => unknown)[] = [
      parseDuration,
      (text) => parseBindAddress(text, 1),
      parseTarget,
      (text) => parseApiTarget(text, undefined),
    ];
    for (const read of readers) orRefused(() => read(line));
  }
}

function orRefused(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
  }
}

/** What reads configuration and the protocols of node-state servers. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "node-state-change-set", form: "bytes", run: readChangeSet },
  { name: "config-file", form: "text", run: readConfigFile },
  { name: "flags", form: "text", run: readFlags },
  { name: "flag-values", form: "text", run: readValues },
];
