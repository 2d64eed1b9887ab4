import { canonicalIP, knownObjects, NodeView, OBJECT_KINDS, Store } from "@turnout/core";
import type { ChangeSet, HiddenService, IPFamily, Issue, KnownObjects, NodeSettings } from "@turnout/core";
import { hiddenAmong, readDocument, splitDocuments } from "@turnout/server/manifests";
import type { RawObject } from "@turnout/server/manifests";
import { listed } from "./state.ts";
import type { PlaygroundState } from "./state.ts";

/** What was entered, read: the state of one node. */
export interface Cluster {
  /** Full, one for each family. */
  readonly changes: Readonly<Record<IPFamily, ChangeSet>>;
  readonly objects: KnownObjects;
  readonly hidden: readonly HiddenService[];
  readonly issues: readonly Issue[];
  /** What can't be read or is not used, a line each, for people. */
  readonly complaints: readonly string[];
  /** On the node's devices, loopback first, canonical. */
  readonly hostAddresses: Readonly<Record<IPFamily, readonly string[]>>;
}

/** Read what was entered, as `turnout print --source file:…` does. Pure; what is wrong is in `issues` and `complaints`, and the rest counts. */
export function readCluster(state: PlaygroundState): Cluster {
  const complaints: string[] = [];
  const issues: Issue[] = [];
  const report = (issue: Issue): void => void issues.push(issue);
  const store = new Store({ report });
  const hidden: RawObject[] = [];
  const seen = new Set<string>();
  for (const { text, line } of splitDocuments(state.manifests)) {
    const content = readDocument(text);
    hidden.push(...content.hidden);
    complaints.push(
      ...content.problems.map(({ lineOffset, what, hint }) => `line ${line + lineOffset}: ${what}: ${hint}; until then it is left out`),
    );
    complaints.push(
      ...new Set(content.ignored.map((kind) => `line ${line}: ${kind} is nothing that a service proxy reads: it is left out`)),
    );
    for (const { kind, key, object } of content.objects) {
      const id = `${kind} ${key}`;
      if (seen.has(id)) complaints.push(`line ${line}: ${id} is there twice: the first one counts`);
      else store.upsert(kind, object);
      seen.add(id);
    }
  }
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  complaints.push(...nodeComplaints(store, state.node));
  const settings = settingsOf(state);
  const changesOf = (family: IPFamily): ChangeSet => {
    const changes = new NodeView(store, { nodeName: state.node, family, settings, report }).pull();
    if (changes === undefined) throw new Error("a synced store has a state");
    return changes;
  };
  const changes = { IPv4: changesOf("IPv4"), IPv6: changesOf("IPv6") };
  const more = listed(state.addresses).flatMap((text) => canonicalIP(text) ?? []);
  const addressesOf = (family: IPFamily): readonly string[] => [
    ...new Set([
      family === "IPv4" ? "127.0.0.1" : "::1",
      ...(changes[family].node?.addresses ?? []),
      ...more.flatMap((ip) => (ip.family === family ? [ip.text] : [])),
    ]),
  ];
  return {
    changes,
    objects: knownObjects(store),
    hidden: hiddenAmong(hidden),
    issues,
    complaints,
    hostAddresses: { IPv4: addressesOf("IPv4"), IPv6: addressesOf("IPv6") },
  };
}

function nodeComplaints(store: Store, name: string): readonly string[] {
  if (store.node(name) !== undefined) return [];
  const known = [...store.nodeNames()];
  const others = known.length === 0 ? "" : ` (there is ${known.slice(0, 4).join(", ")})`;
  return [`there is no Node ${name}${others}: no endpoint is on this node, and node ports have no address`];
}

function settingsOf({ pods, nodePortAddresses, masqueradeAll }: PlaygroundState): NodeSettings {
  const chosen = listed(nodePortAddresses);
  return {
    masqueradeAll,
    masqueradeBit: 14,
    detectLocal: { mode: "ClusterCIDR", clusterCIDRs: listed(pods) },
    nodePortAddresses: chosen.length === 0 ? undefined : chosen,
  };
}
