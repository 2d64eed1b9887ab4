import { wire } from "@turnout/client/protocol";
import { ProxyError } from "@turnout/core";
import type { FuzzTarget } from "@turnout/house/fuzz";
import { readDocument, splitDocuments } from "../files/manifest.ts";
import { parseKubeconfig } from "../kube/access/kubeconfig.ts";
import { LineSplitter } from "../kube/line-splitter.ts";
import { readList } from "../kube/list-page.ts";
import { parseRefusal } from "../kube/refusal.ts";
import { parseWatchEvent } from "../kube/watch-event.ts";
import { readQuestion } from "../node-api/watch-session.ts";
import { parseSourceSpec } from "../node-state/source.ts";

/** How much of a stream comes at once. */
const CHUNK_BYTES = 37;

/** A watch's stream in pieces, up to the first line that ends it. */
function readWatch(input: Buffer): void {
  const splitter = new LineSplitter();
  for (let at = 0; at < input.length; at += CHUNK_BYTES)
    for (const line of splitter.push(input.subarray(at, at + CHUNK_BYTES))) parseWatchEvent(line, "Service");
}

/** A list in pieces. */
async function readPage(input: Buffer): Promise<void> {
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < input.length; at += CHUNK_BYTES) yield Promise.resolve(input.subarray(at, at + CHUNK_BYTES));
  }
  await readList(chunks(), "Service", () => undefined);
}

function readHello(input: Buffer): void {
  const { request } = decoded(input);
  if (request?.$case === "hello") readQuestion(request.value, undefined);
}

/** As a session decodes it (watch-session.ts). */
function decoded(input: Buffer): wire.WatchRequest {
  try {
    return wire.WatchRequest.decode(input);
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "the message is no turnout.node.v1.WatchRequest");
  }
}

const text =
  (read: (input: string) => unknown): FuzzTarget["run"] =>
  (input) =>
    read(input.toString("utf8"));

/** What reads API servers, files, and clients of the node-state API. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "kube-watch", form: "text", run: readWatch },
  { name: "kube-list", form: "json", run: readPage },
  { name: "kube-refusal", form: "json", run: text((body) => parseRefusal(400, body, body)) },
  { name: "kubeconfig", form: "text", run: text((file) => parseKubeconfig([{ path: "kubeconfig", text: file }])) },
  { name: "manifest", form: "text", run: text((file) => splitDocuments(file).map((document) => readDocument(document.text))) },
  { name: "source-spec", form: "text", run: text(parseSourceSpec) },
  { name: "node-state-request", form: "bytes", run: readHello },
];
