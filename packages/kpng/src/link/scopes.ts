import type { Endpoint, Service } from "../gen/kpng/localv1/localv1.ts";
import type { KpngEndpoint } from "./raw-slices.ts";

/** The zone of a node that is known from localv1 alone; see {@link scopeZones}. */
export const SCOPE_ZONE = "in-scope";
const OTHER_ZONE = "out-of-scope";

/** Tell which traffic an endpoint is for; one that does not say is for all that its place allows. */
function scopesOf(
  { ExternalTrafficToLocal, InternalTrafficToLocal }: Service,
  { Local, Scopes }: Endpoint,
): { internal: boolean; external: boolean } {
  if (Scopes !== undefined) return { internal: Scopes.Internal, external: Scopes.External };
  return { internal: Local || !InternalTrafficToLocal, external: Local || !ExternalTrafficToLocal };
}

/** The traffic that may leave the node: then the endpoints it is for are the cluster pool. */
function isOfCluster(service: Service, endpoint: Endpoint): boolean {
  const { internal, external } = scopesOf(service, endpoint);
  if (service.InternalTrafficToLocal && service.ExternalTrafficToLocal) return true;
  if (service.InternalTrafficToLocal) return external;
  return service.ExternalTrafficToLocal ? internal : internal || external;
}

/** The traffic that has to stay on the node: then the endpoints it is for are the local pool. */
function isOfNode(service: Service, endpoint: Endpoint): boolean {
  const { internal, external } = scopesOf(service, endpoint);
  if (service.InternalTrafficToLocal && service.ExternalTrafficToLocal) return endpoint.Local && (internal || external);
  if (service.InternalTrafficToLocal) return endpoint.Local && internal;
  return service.ExternalTrafficToLocal ? endpoint.Local && external : endpoint.Local;
}

/**
 * Tell whether the scopes of a Service's endpoints need hints to be respected: the node-state server narrowed the cluster's pool.
 *
 * Shape: an endpoint hinted for {@link SCOPE_ZONE} is in the pool of a node of that zone, one hinted for another is not. That a node
 * without any gets all is the API's rule for hints, so a pool the node-state server left empty is not left so.
 */
export function scopeZones(service: Service, endpoints: readonly Endpoint[]): boolean {
  return endpoints.some((endpoint) => !isOfCluster(service, endpoint));
}

/** Write an endpoint of localv1 as one that this side's rules put where its node-state server wants it. */
export function scopedEndpoint(service: Service, endpoint: Endpoint, nodeName: string, needsZones: boolean): KpngEndpoint {
  const zone = isOfCluster(service, endpoint) ? SCOPE_ZONE : OTHER_ZONE;
  return {
    endpoint,
    isReady: true,
    nodeName: isOfNode(service, endpoint) ? nodeName : undefined,
    zones: needsZones ? [zone] : [],
    podName: undefined,
  };
}
