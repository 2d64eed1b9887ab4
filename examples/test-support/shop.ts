/** A Service of the shop. */
export interface ShopService {
  readonly name: string;
  /** Of its cluster IP, 10.96.0.N, and its node port, 300NN. */
  readonly number: number;
  readonly endpoints: readonly string[];
}

/** The Service and its EndpointSlice as YAML. Pure. */
export function shopManifests({ name, number, endpoints }: ShopService): string {
  return `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { type: NodePort, clusterIP: 10.96.0.${number}, ports: [{ name: http, port: 80, nodePort: 300${number} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [${endpoints.map((address) => `{ addresses: [${address}] }`).join(", ")}]
`;
}
