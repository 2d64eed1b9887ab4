import { readFileSync } from "node:fs";
import { NodeView, Store } from "@turnout/core";
import type { Backend, Delta, IPFamily, NodeSettings, ObjectKind } from "@turnout/core";
import { TestProxy } from "@turnout/core/testing";
import type { WantedState } from "@turnout/core/testing";
import { loadConfig, runConfig } from "@turnout/client/daemon";
import type { IptablesObject } from "../objects.ts";
import type { IptablesFacts } from "../options.ts";
import type { Step } from "../plan.ts";

/** A recording of the real kube-proxy: see test/kube-proxy/README.md. */
export interface RecordedCase {
  readonly name: string;
  /** Which objects it was given. */
  readonly set: string;
  /** Fields of its KubeProxyConfiguration. */
  readonly fields: Readonly<Record<string, unknown>>;
}

interface RawObject {
  readonly kind: ObjectKind;
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

const FOLDER = new URL("../../test/kube-proxy/", import.meta.url);
/** A source does not pass on what has this label. */
const OTHER_PROXY = "service.kubernetes.io/service-proxy-name";

/** The node as the recorder's laboratory had it. */
const FACTS: Omit<IptablesFacts, "canCount"> = {
  addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  isTcpLiberal: false,
};

/** Every recording. */
export function recordedCases(): readonly RecordedCase[] {
  return JSON.parse(readText("cases.json")) as readonly RecordedCase[];
}

/** What `iptables-save` printed after kube-proxy's first sync: all tables, counters zero. */
export function recordedSave({ name }: RecordedCase, family: IPFamily): string {
  return readText(`${name}.${family}.save`);
}

/** Options that do what kube-proxy did by itself in a recording. */
export function optionsOf({ name }: RecordedCase): Readonly<Record<string, boolean>> {
  return { localhostNodePorts: name !== "no-localhost" };
}

/** Our rows and context for what kube-proxy was given, on a kernel that can count packets or can not. */
export function stateOf(one: RecordedCase, family: IPFamily, canCount: boolean): WantedState & { readonly host: IptablesFacts } {
  const store = new Store();
  for (const object of objectsOf(one)) store.upsert(object.kind, object);
  for (const kind of ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const) store.markSynced(kind);
  const view = new NodeView(store, { nodeName: "node1", family, settings: settingsOf(one) });
  const node = view.pull()?.node;
  if (node === undefined) throw new Error("a synced store gives a full change set");
  return { rows: new Map(view.rows), node, host: { ...FACTS, isTcpLiberal: one.name === "liberal", canCount } };
}

/** What a new process of ours would change on a host: it looks, and compares. */
export async function adoptionOf(
  backend: Backend<IptablesFacts, IptablesObject, Step>,
  state: ReturnType<typeof stateOf>,
): Promise<Delta<IptablesObject>> {
  const proxy = new TestProxy(backend, { host: state.host, stateOf: () => state, nowMs: Date.now });
  proxy.want(undefined);
  await proxy.adopt();
  return proxy.ledger.delta(0);
}

function objectsOf({ set }: RecordedCase): readonly RawObject[] {
  const { items } = JSON.parse(readText(`${set}.objects.json`)) as { readonly items: readonly RawObject[] };
  return items.filter(({ metadata }) => metadata.labels?.[OTHER_PROXY] === undefined);
}

/** The settings that kube-proxy's own configuration comes to. */
function settingsOf({ fields }: RecordedCase): NodeSettings {
  const text = JSON.stringify({ apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", ...fields });
  return runConfig(loadConfig({ flags: {}, file: { path: "config.json", text }, hostname: "node1" }), { name: "iptables" }).settings;
}

function readText(name: string): string {
  return readFileSync(new URL(name, FOLDER), "utf8");
}
