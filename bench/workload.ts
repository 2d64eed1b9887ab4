/** How many services, and how many endpoints each of them has. */
export interface Shape {
  readonly services: number;
  /** 1–64. */
  readonly endpoints: number;
  /** Every service has the same endpoints, 11.0.0.1 and up: for benches that connect to them. */
  readonly shared?: boolean;
}

/** One endpoint of the workload. */
export interface WorkEndpoint {
  readonly ip: string;
  readonly nodeName: string;
}

/** The node the benches look from; it has one in {@link NODES} of all endpoints. */
export const NODE_NAME = "n0";
/** Pods of the workload are in here. */
export const POD_CIDR = "11.0.0.0/8";
/** Cluster IPs of the workload are in here. */
export const SERVICE_CIDR = "10.96.0.0/12";
/** Port of every service. */
export const SERVICE_PORT = 80;
/** Port of every endpoint. */
export const TARGET_PORT = 8080;
const NAMESPACE = "bench";
/** Nodes the endpoints run on: n0 and up. */
export const NODES = 1000;
const ENDPOINTS_MAX = 64;
/** 10.96.0.0 and 11.0.0.0, as numbers. */
const SERVICE_BASE = 0x0a600000;
const POD_BASE = 0x0b000000;
/** 192.168.77.0, likewise. */
const NODE_BASE = 0xc0a84d00;

/** Read `10000x10`, or `10000` with 10 endpoints each. @throws {RangeError} when it is neither or out of bounds. */
export function parseShape(text: string): Shape {
  const match = /^(\d+)(?:x(\d+))?$/.exec(text);
  const shape = { services: Number(match?.[1]), endpoints: Number(match?.[2] ?? 10) };
  const isUsable = shape.services >= 1 && shape.services <= 200_000 && shape.endpoints >= 1 && shape.endpoints <= ENDPOINTS_MAX;
  if (!isUsable) throw new RangeError(`"${text}" is no size: say SERVICESxENDPOINTS, e.g. 10000x10 (at most 200000x${ENDPOINTS_MAX})`);
  return shape;
}

/** Write a shape for people: `10,000 x 10`. */
export function shapeText({ services, endpoints }: Shape): string {
  return `${services.toLocaleString("en-US")} x ${endpoints}`;
}

/** Name of service `index`, from 0. */
export function serviceName(index: number): string {
  return `svc-${index}`;
}

/** Cluster IP of service `index`. */
export function clusterIP(index: number): string {
  return ipText(SERVICE_BASE + index + 1);
}

/** The endpoints of service `index`, without the one at `missing` if given. */
export function endpointsOf(index: number, { endpoints, shared }: Shape, missing?: number): readonly WorkEndpoint[] {
  const all = Array.from({ length: endpoints }, (_, k) => ({
    ip: ipText(POD_BASE + (shared === true ? 0 : index * ENDPOINTS_MAX) + k + 1),
    nodeName: `n${(index * endpoints + k) % NODES}`,
  }));
  return missing === undefined ? all : all.filter((_, k) => k !== missing);
}

/** A v1 Service with one cluster IP and one TCP port, as the API sends it (metadata that nobody reads included). */
export function serviceObject(index: number, port: number = SERVICE_PORT): Record<string, unknown> {
  const name = serviceName(index);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: NAMESPACE, name, uid: uidOf(1, index), creationTimestamp: "2026-01-01T00:00:00Z", labels: { app: name } },
    spec: {
      type: "ClusterIP",
      clusterIP: clusterIP(index),
      clusterIPs: [clusterIP(index)],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
      selector: { app: name },
      ports: [{ name: "http", protocol: "TCP", port, targetPort: TARGET_PORT }],
    },
    status: { loadBalancer: {} },
  };
}

/** The EndpointSlice of service `index`; `missing` leaves one endpoint out, `unready` makes one not ready. */
export function sliceObject(
  index: number,
  shape: Shape,
  change: { readonly missing?: number; readonly unready?: number } = {},
): Record<string, unknown> {
  const service = serviceName(index);
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace: NAMESPACE,
      name: `${service}-abcde`,
      uid: uidOf(2, index),
      labels: { "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" },
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: TARGET_PORT }],
    endpoints: endpointsOf(index, shape, change.missing).map(({ ip, nodeName }, k) => ({
      addresses: [ip],
      nodeName,
      conditions: { ready: k !== change.unready, serving: k !== change.unready, terminating: false },
      targetRef: { kind: "Pod", namespace: NAMESPACE, name: `${service}-${k}`, uid: uidOf(3, index * ENDPOINTS_MAX + k) },
    })),
  };
}

/** A node; the benches look from n0. */
export function nodeObject(index: number = 0): Record<string, unknown> {
  const podCIDR = `${ipText(POD_BASE + index * 256)}/24`;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `n${index}`, uid: uidOf(4, index) },
    spec: { podCIDR, podCIDRs: [podCIDR] },
    status: { addresses: [{ type: "InternalIP", address: ipText(NODE_BASE + index + 1) }] },
  };
}

/** All objects of a workload: the node, the range and each Service with its slice; one after another, so that the caller need not keep all. */
export function* objectsOf(shape: Shape): Generator<Record<string, unknown>> {
  yield nodeObject();
  yield serviceCIDRObject();
  for (let index = 0; index < shape.services; index++) {
    yield serviceObject(index);
    yield sliceObject(index, shape);
  }
}

/** The range of {@link clusterIP}. */
export function serviceCIDRObject(): Record<string, unknown> {
  return { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" }, spec: { cidrs: [SERVICE_CIDR] } };
}

function ipText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}

function uidOf(kind: number, index: number): string {
  return `${kind.toString(16).padStart(8, "0")}-0000-4000-8000-${index.toString(16).padStart(12, "0")}`;
}
