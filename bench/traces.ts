import { NODES, nodeObject, serviceObject, sliceObject } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** One API object that changed, as a source tells it. */
export interface TraceEvent {
  readonly kind: "Service" | "EndpointSlice" | "Node";
  /** Undefined: it is gone, `name` in `namespace`. */
  readonly object: Readonly<Record<string, unknown>> | undefined;
  readonly name: string;
}

/** What happens in a cluster, as events. */
export type Trace = (shape: Shape) => Iterable<TraceEvent>;

const NOISE = 20_000;
const RESTARTED = 20;
const CHURNED = 50;
/** Kubelets report their Node's status every five minutes when nothing changes, and renew a lease, which nobody reads. */
const HEARTBEATS = 10;

type Raw = Readonly<Record<string, unknown>>;

function service(index: number, more: Raw = {}): TraceEvent {
  const object = serviceObject(index);
  const metadata = { ...(object["metadata"] as Raw), ...more };
  return { kind: "Service", object: { ...object, metadata }, name: `svc-${index}` };
}

function slice(index: number, object: Raw, metadata: Raw = {}): TraceEvent {
  return { kind: "EndpointSlice", object: { ...object, metadata: { ...(object["metadata"] as Raw), ...metadata } }, name: `svc-${index}` };
}

function node(index: number, more: { readonly conditions?: unknown; readonly spec?: Raw; readonly annotations?: Raw } = {}): TraceEvent {
  const object = nodeObject(index);
  const metadata = { ...(object["metadata"] as Raw), annotations: more.annotations ?? {} };
  const status = { ...(object["status"] as Raw), conditions: more.conditions ?? [] };
  return { kind: "Node", object: { ...object, metadata, status, spec: { ...(object["spec"] as Raw), ...more.spec } }, name: `n${index}` };
}

function heartbeat(index: number, turn: number): TraceEvent {
  return node(index, { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: `turn ${turn}` }] });
}

/** Somebody's bookkeeping: annotations, labels, conditions, order. */
function* noise(shape: Shape): Iterable<TraceEvent> {
  for (let turn = 0; turn < NOISE; turn++) {
    const index = (turn * 7919) % shape.services;
    if (turn % 4 === 0) yield service(index, { resourceVersion: String(turn), annotations: { "example.org/checked": String(turn) } });
    else if (turn % 4 === 1) {
      const object = sliceObject(index, shape);
      yield slice(index, { ...object, endpoints: (object["endpoints"] as readonly unknown[]).toReversed() }, { generation: turn });
    } else yield heartbeat(turn % NODES, turn);
  }
}

/** All objects again, as a list tells them after a connection broke. */
function* relist(shape: Shape): Iterable<TraceEvent> {
  for (let index = 0; index < shape.services; index++) {
    yield service(index);
    yield slice(index, sliceObject(index, shape));
  }
  for (let index = 0; index < NODES; index++) yield node(index);
}

/** Of each Service every pod in turn: the new one comes, is ready; the old one ends, is gone. Nodes report meanwhile. */
function* rollingRestart(shape: Shape): Iterable<TraceEvent> {
  for (let index = 0; index < Math.min(RESTARTED, shape.services); index++) {
    let pods = (sliceObject(index, shape)["endpoints"] as readonly Raw[]).map((endpoint) => ({ ...endpoint }));
    const reported = (): TraceEvent => slice(index, { ...sliceObject(index, shape), endpoints: pods });
    for (let pod = 0; pod < shape.endpoints; pod++) {
      const old = pods[0] ?? {};
      const address = `12.${index}.${pod}.1`;
      const comes = { ...old, addresses: [address], conditions: { ready: false, serving: false, terminating: false } };
      pods = [...pods, comes];
      yield reported();
      pods = [...pods.slice(0, -1), { ...comes, conditions: { ready: true, serving: true, terminating: false } }];
      yield reported();
      pods = [{ ...old, conditions: { ready: false, serving: true, terminating: true } }, ...pods.slice(1)];
      yield reported();
      pods = pods.slice(1);
      yield reported();
      for (let beat = 0; beat < HEARTBEATS; beat++) yield heartbeat((pod * HEARTBEATS + beat) % NODES, pod);
    }
  }
}

/** Nodes come, get ready, are cordoned and drained, and go; no pod of the workload is on them. */
function* nodeChurn(): Iterable<TraceEvent> {
  for (let turn = 0; turn < CHURNED; turn++) {
    const index = NODES + turn;
    yield node(index, { conditions: [{ type: "Ready", status: "False" }], spec: { taints: [{ key: "node.kubernetes.io/not-ready" }] } });
    yield node(index, { conditions: [{ type: "Ready", status: "True" }] });
    yield node(index, { annotations: { "example.org/agent": "up" } });
    for (let beat = 0; beat < HEARTBEATS; beat++) yield heartbeat(index, beat);
    yield node(index, { spec: { unschedulable: true } });
    yield node(index, { spec: { taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] } });
    yield { kind: "Node", object: undefined, name: `n${index}` };
  }
}

/** What the benches play, as a source would tell it; resyncs are a trace of their own. What each is made of: cases/change-sets.yaml. */
export const TRACES: Readonly<Record<string, Trace>> = {
  noise,
  "everything again": relist,
  "rolling restart": rollingRestart,
  "node churn": nodeChurn,
};
