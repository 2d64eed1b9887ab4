import type { ApiClient, ApiRequest } from "./api-client.ts";

const NAMESPACE = "shop";
const SERVICES = `/api/v1/namespaces/${NAMESPACE}/services`;
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;

/** What one Service has now. */
interface Shop {
  readonly name: string;
  readonly port: number;
  readonly isDual: boolean;
  /** Number of the endpoints: all others of the world have other addresses. */
  readonly endpoints: readonly number[];
  /** Given by the API server. */
  readonly clusterIPs: readonly string[];
}

/** Services and slices of a real API server, where no controller makes any, and what rules must be there for them. */
export class ShopWorld {
  readonly #api: ApiClient;
  readonly #shops = new Map<string, Shop>();
  #endpoint = 0;
  #serial = 0;

  private constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Make the namespace. */
  static async create(api: ApiClient): Promise<ShopWorld> {
    await api.send([{ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: NAMESPACE } } }]);
    return new ShopWorld(api);
  }

  /** Make Services with three endpoints each; every fifth has both families. */
  async add(count: number): Promise<void> {
    const shops = Array.from({ length: count }, () => {
      const number = ++this.#serial;
      return { name: `s${number}`, port: 80 + (number % 7), isDual: number % 5 === 0, endpoints: this.#next(3) };
    });
    const made = await this.#api.send(
      shops.map(({ name, port, isDual }): ApiRequest => {
        const spec = { ports: [{ name: "http", port }], ipFamilyPolicy: isDual ? "RequireDualStack" : "SingleStack" };
        return { method: "POST", path: SERVICES, body: { kind: "Service", apiVersion: "v1", metadata: { name }, spec } };
      }),
    );
    for (const [index, shop] of shops.entries()) {
      const { spec } = made[index] as { spec: { clusterIPs: readonly string[] } };
      this.#shops.set(shop.name, { ...shop, clusterIPs: spec.clusterIPs });
    }
    await this.#api.send(shops.flatMap((shop) => slicesOf(shop).map((body) => ({ method: "POST" as const, path: SLICES, body }))));
  }

  /** Change some Services, each in one of four ways: other endpoints, no endpoints, another port, or it goes. */
  async change(count: number): Promise<void> {
    const requests: ApiRequest[] = [];
    for (const [index, shop] of [...this.#shops.values()].slice(0, count).entries()) {
      // What was changed comes last the next time.
      this.#shops.delete(shop.name);
      const slices = (after: Shop): readonly ApiRequest[] =>
        slicesOf(after).map((body) => ({ method: "PUT", path: `${SLICES}/${body.metadata.name}`, body }));
      if (index % 4 === 3) {
        requests.push({ method: "DELETE", path: `${SERVICES}/${shop.name}` });
        requests.push(...slicesOf(shop).map(({ metadata }) => ({ method: "DELETE" as const, path: `${SLICES}/${metadata.name}` })));
        continue;
      }
      const after = index % 4 === 2 ? { ...shop, port: shop.port + 100 } : { ...shop, endpoints: this.#next(index % 4 === 1 ? 0 : 2) };
      this.#shops.set(shop.name, after);
      if (after.port === shop.port) requests.push(...slices(after));
      else
        requests.push({
          method: "PATCH",
          path: `${SERVICES}/${shop.name}`,
          body: { spec: { ports: [{ name: "http", port: after.port }] } },
        });
    }
    await this.#api.send(requests);
  }

  /** Addresses that rules must have, each cluster IP with its port, sorted. */
  get wanted(): readonly string[] {
    return [...this.#shops.values()]
      .flatMap(({ clusterIPs, port, endpoints, isDual }) => [
        ...clusterIPs.map((ip) => `${ip} ${port}`),
        ...endpoints.flatMap((number) =>
          isDual ? [endpointIP(number, "IPv4"), endpointIP(number, "IPv6")] : [endpointIP(number, "IPv4")],
        ),
      ])
      .toSorted();
  }

  #next(count: number): readonly number[] {
    return Array.from({ length: count }, () => ++this.#endpoint);
  }
}

function endpointIP(number: number, family: "IPv4" | "IPv6"): string {
  return family === "IPv4" ? `10.1.${100 + (number >> 8)}.${number & 255}` : `fd00:1:100::${(number + 0x1000).toString(16)}`;
}

function slicesOf({
  name,
  endpoints,
  isDual,
}: Omit<Shop, "clusterIPs">): readonly (object & { readonly metadata: { readonly name: string } })[] {
  return (isDual ? (["IPv4", "IPv6"] as const) : (["IPv4"] as const)).map((addressType) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${name}-${addressType.toLowerCase()}`, labels: { "kubernetes.io/service-name": name } },
    addressType,
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: endpoints.map((number) => ({ addresses: [endpointIP(number, addressType)], conditions: { ready: true } })),
  }));
}

/** Find in the rules of nft what {@link ShopWorld.wanted} is to be compared with. Pure. Edges: the API server's own Service is left out. */
export function foundIn(listing: string, apiServerIP: string): readonly string[] {
  // A cluster IP is a key together with a protocol and a port; an endpoint is any address of the pods' range that is no range itself.
  const services = [...listing.matchAll(/(?:ip6? daddr )?\b(10\.9[67]\.\d+\.\d+|fd00:96::[0-9a-f:]*) \. tcp \. (\d+)/g)].map(
    ([, ip = "", port = ""]) => `${ip} ${port}`,
  );
  const endpoints = [...listing.matchAll(/\b(10\.1\.\d+\.\d+|fd00:1:100::[0-9a-f]+)(?![0-9a-f./:])/g)].map(([, ip = ""]) => ip);
  return [...new Set([...services, ...endpoints])].filter((text) => !text.startsWith(`${apiServerIP} `)).toSorted();
}
