/** What a visitor has entered: all that an answer depends on, and what a link holds. Texts as they were typed. */
export interface PlaygroundState {
  /** YAML or JSON documents. */
  readonly manifests: string;
  /** The node that is asked, by its Node object's name. */
  readonly node: string;
  /** Ranges of pods, comma-separated, as `--cluster-cidr`; "": pods can't be told. */
  readonly pods: string;
  /** Who sends: an address, or `host`. */
  readonly from: string;
  /** Where to, as `turnout why` takes it: `10.96.0.20:80`, `[fd00::1]:53/udp`; "": no packet is asked about. */
  readonly to: string;
  /** The backend whose walk is shown. */
  readonly backend: string;
  /** The node's addresses besides those of its Node object, comma-separated. */
  readonly addresses: string;
  /** Where node ports answer, as `--nodeport-addresses`; "": the backend's default. */
  readonly nodePortAddresses: string;
  readonly masqueradeAll: boolean;
}

/** What a visitor finds who has no link. */
export const FIRST_STATE: PlaygroundState = {
  manifests: `apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.20
  externalTrafficPolicy: Local
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: cart-1, namespace: shop, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.1.1.2], nodeName: node1 }
  - { addresses: [10.1.2.2], nodeName: node2 }
---
apiVersion: v1
kind: Node
metadata: { name: node1 }
spec: { podCIDRs: [10.1.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 172.18.0.1 }] }
---
apiVersion: v1
kind: Node
metadata: { name: node2 }
spec: { podCIDRs: [10.1.2.0/24] }
status: { addresses: [{ type: InternalIP, address: 172.18.0.2 }] }
`,
  node: "node1",
  pods: "10.1.0.0/16",
  from: "203.0.113.7",
  to: "172.18.0.1:30080",
  backend: "nft",
  addresses: "",
  nodePortAddresses: "",
  masqueradeAll: false,
};

const TEXTS = ["manifests", "node", "pods", "from", "to", "backend", "addresses", "nodePortAddresses"] as const;

/** Read a state from what a link held; undefined where it is none. A part that is missing is as in {@link FIRST_STATE}. Pure. */
export function stateFrom(value: unknown): PlaygroundState | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const given = value as Readonly<Record<string, unknown>>;
  for (const name of TEXTS) if (given[name] !== undefined && typeof given[name] !== "string") return undefined;
  const texts = Object.fromEntries(TEXTS.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])));
  return { ...FIRST_STATE, ...(texts as Partial<PlaygroundState>), masqueradeAll: given["masqueradeAll"] === true };
}

/** Split what was typed as a list. Pure. */
export function listed(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((part) => part !== "");
}
